"""MODULE:ATTRIBUTE: what cannot be loaded is one clear line and exit code 2, never a traceback of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Slotqueue, Start

WriteApp = Callable[..., None]


@pytest.mark.parametrize(
    "named, line",
    [
        ("nowhere:slots", "there is no module 'nowhere' in "),
        ("app.deeper:slots", "there is no module 'app.deeper' in "),
        ("app:slotz", "the module 'app' has no 'slotz'; its SlotQueue is app:slots"),
        ("app:fake.queue", "the module 'app' has no 'fake.queue'; its SlotQueue is app:slots"),
        ("app:fake", "app:fake is no SlotQueue, it is a Fake; its SlotQueue is app:slots"),
        ("app", "'app' does not name an application; write MODULE:ATTRIBUTE, such as app:slots"),
        ("app.py", "'app.py' does not name an application; write MODULE:ATTRIBUTE, such as app:slots"),
        ("./app.py:slots", "'./app.py:slots' does not name an application; write MODULE:ATTRIBUTE, such as app:slots"),
        ("src/app.py", "'src/app.py' does not name an application; write MODULE:ATTRIBUTE, such as src.app:slots"),
        ("app:", "'app:' does not name an application; write MODULE:ATTRIBUTE, such as app:slots"),
        ("..app:slots", "'..app:slots' does not name an application; write MODULE:ATTRIBUTE, such as app:slots"),
    ],
)
@pytest.mark.parametrize("verb", ["tick", "sweep", "next", "check"])
def test_what_cannot_be_found_is_one_line(
    write_app: WriteApp, slotqueue: Slotqueue, verb: str, named: str, line: str
) -> None:
    write_app()
    result = slotqueue(verb, named)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {line}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["tick", "sweep", "run"])
def test_without_an_application_each_verb_says_how_to_name_one(slotqueue: Slotqueue, verb: str) -> None:
    result = slotqueue(verb)
    assert result.exit_code == 2
    assert result.stderr == "Error: name the application as MODULE:ATTRIBUTE, such as app:slots, or set SLOTQUEUE_APP\n"


def test_a_module_without_a_slotqueue_says_what_to_do(folder: Path, slotqueue: Slotqueue) -> None:
    (folder / "app.py").write_text("def make(): pass\n")
    result = slotqueue("next", "app:make")
    assert result.exit_code == 2
    assert "app:make is no SlotQueue, it is a function; it holds no SlotQueue: assign one" in result.stderr


def test_an_error_in_the_users_module_shows_where_in_the_users_file(folder: Path, slotqueue: Slotqueue) -> None:
    (folder / "app.py").write_text("import helper_of_app\n")
    (folder / "helper_of_app.py").write_text("def divide():\n    return 1 / 0\n\ndivide()\n")
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    assert 'helper_of_app.py", line 2, in divide' in result.stderr
    assert "slotqueue/cli" not in result.stderr
    assert result.stderr.splitlines()[-1] == (
        "Error: helper_of_app.py, line 2: importing 'app' raised ZeroDivisionError: division by zero"
    )


def test_a_module_that_the_users_module_misses_is_told_from_the_users_module(
    folder: Path, slotqueue: Slotqueue
) -> None:
    (folder / "app.py").write_text("\nimport not_installed_here\n")
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "Error: app.py, line 2: importing 'app' raised ModuleNotFoundError: No module named 'not_installed_here'"
    )


def test_a_syntax_error_shows_its_line(folder: Path, slotqueue: Slotqueue) -> None:
    (folder / "app.py").write_text("x = 1\nif\n")
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: app.py, line 2: importing 'app' raised SyntaxError")


def test_a_module_that_ends_the_process_is_told(folder: Path, slotqueue: Slotqueue) -> None:
    (folder / "app.py").write_text("raise SystemExit(0)\n")
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    assert result.stderr == "Error: app.py, line 1: the module 'app' ends the process when it is imported\n"


def test_a_wrong_job_is_one_line_with_its_place(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app('slots.add("nightly", Cron("0 3 31 2 *"))\n')
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: app.py, line ")
    assert "0 3 31 2 *" in line


def test_a_missing_extra_is_one_line_with_what_installs_it(folder: Path, start: Start) -> None:
    """The real command: a module that cannot be imported stands in for arq."""
    (folder / "arq.py").write_text("raise ImportError('not here')\n")
    (folder / "app.py").write_text("from slotqueue.enqueuers.arq import ArqEnqueuer\n")
    run = start("next", "app:slots", PYTHONPATH=str(folder))
    assert run.process.wait(20) == 2
    (line,) = run.err.splitlines()
    assert line == "Error: app.py, line 1: arq is not installed; install it with: pip install 'slotqueue[arq]'"


def test_the_current_folder_is_on_the_path_for_the_installed_command(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app()
    assert slotqueue("next", "app:slots").stdout == "there are no jobs\n"


def test_an_attribute_may_stand_inside_another(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app("class box:\n    inner = slots\n")
    assert slotqueue("next", "app:box.inner").exit_code == 0


def test_a_bad_url_is_told_with_the_line_of_the_users_file(folder: Path, slotqueue: Slotqueue) -> None:
    (folder / "app.py").write_text("from slotqueue import SlotQueue\n\nslots = SlotQueue('localhost:6379')\n")
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: app.py, line 3: redis: the given text is no Redis URL")


def test_a_worker_system_that_the_users_module_misses_is_one_line(
    folder: Path, slotqueue: Slotqueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "app.py").write_text("\nfrom celery import Celery\n")
    monkeypatch.setitem(sys.modules, "celery", None)
    result = slotqueue("check", "app:slots", "--offline")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line == ("Error: app.py, line 2: celery is not installed; install it with: pip install 'slotqueue[celery]'")
