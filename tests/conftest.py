"""Fixtures and rules of the whole suite.

- `server`: one running server for the session, or rather for each xdist worker; tests share it and leave it running.
- `redis_url`: its URL, with all data dropped.
- `own_server`: a fresh server for one test, which may kill, pause and restart it and change its settings.
- `durable_server`: the same with an append-only log, so that its data outlives a kill.
- `rabbitmq`: one running RabbitMQ. Tests whose name says "rabbitmq" run in one xdist worker, so that one is enough.

Every test in `tests/races`, `tests/faults` and `tests/demo` is marked `processes`.

Modules in `tests/beat` and modules called `test_celery_*` need Celery. Where it is not installed they are skipped as a
whole; `SLOTQUEUE_TEST_CELERY=required` turns that into a failure, for environments that are made for them.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.load import Load
from tests.rabbitmq import RabbitMQ
from tests.servers import Server, ServerMissing, requested_kind

_PROCESS_FOLDERS = {"races", "faults", "demo"}
_TESTS = Path(__file__).parent
_CELERY_VARIABLE = "SLOTQUEUE_TEST_CELERY"
_HAS_FAILED = pytest.StashKey[bool]()

# A real server answers when the machine lets it: no deadline an example. CI keeps hypothesis' own profile for it.
settings.register_profile(
    "slotqueue", settings.get_profile("ci" if os.environ.get("CI") else "default"), deadline=None, print_blob=True
)
settings.load_profile("slotqueue")


def pytest_configure() -> None:
    # As a shell leaves them in the background, and nohup; children inherit it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        requested_kind()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_TESTS) and item.path.relative_to(_TESTS).parts[0] in _PROCESS_FOLDERS:
            item.add_marker(pytest.mark.processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_HAS_FAILED] = item.stash.get(_HAS_FAILED, False) or report.failed
    return report


class _OneRabbitMQ(LoadScopeScheduling):  # type: ignore[misc] # xdist carries no types
    """Gives all tests whose name says "rabbitmq" to one xdist worker: the start of a node keeps a core busy."""

    def _split_scope(self, nodeid: str) -> str:
        return "rabbitmq" if "rabbitmq" in nodeid else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Follow `--dist loadgroup`; by name, since the marks that it means need not reach xdist."""
    return _OneRabbitMQ(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a failed test answer for what it leaves unclosed; else that is found in any later one, which fails of it."""
    yield
    if request.node.stash.get(_HAS_FAILED, False):
        for name in ("last_exc", "last_value", "last_traceback"):  # pytest's, with all that the test held
            if hasattr(sys, name):
                delattr(sys, name)
        gc.collect()


class _WithoutCelery(pytest.Module):
    """A module of tests that cannot be imported here."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        if os.environ.get(_CELERY_VARIABLE) == "required":
            pytest.fail(f"celery is not installed here, and {_CELERY_VARIABLE}=required", pytrace=False)
        pytest.skip("celery is not installed here")


class _WithoutArq(pytest.Module):
    """The same where arq is missing: newest Celery and arq need different releases of redis-py."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        pytest.skip("arq is not installed here")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    needs_celery = _TESTS / "beat" in module_path.parents or module_path.name.startswith("test_celery_")
    if needs_celery and importlib.util.find_spec("celery") is None:
        module: pytest.Module = _WithoutCelery.from_parent(parent, path=module_path)
        return module
    if module_path.name.startswith("test_arq_") and importlib.util.find_spec("arq") is None:
        without: pytest.Module = _WithoutArq.from_parent(parent, path=module_path)
        return without
    return None


def _or_skip(missing: ServerMissing) -> NoReturn:
    """In CI a missing server is a failure, elsewhere a reason to skip."""
    if os.environ.get("CI"):
        pytest.fail(str(missing), pytrace=False)
    pytest.skip(str(missing))


def _new_server(*, appendonly: bool = False) -> Server:
    """Return a server that is not started."""
    try:
        return Server(appendonly=appendonly)
    except ServerMissing as missing:
        _or_skip(missing)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with _new_server() as server, Load(server.port):
        yield server


@pytest.fixture
def redis_url(server: Server) -> str:
    server.flush()
    return server.url


@pytest.fixture
def own_server() -> Iterator[Server]:
    with _new_server() as server:
        yield server


@pytest.fixture
def durable_server() -> Iterator[Server]:
    with _new_server(appendonly=True) as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """One RabbitMQ for the session."""
    try:
        node = RabbitMQ()
    except ServerMissing as missing:
        _or_skip(missing)
    with node:
        yield node
