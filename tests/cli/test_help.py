"""Help that teaches, and verbs that break no other."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from slotqueue.cli import main
from slotqueue.cli.verbs import Verb, Verbs
from tests.cli.conftest import Slotqueue, Start

VERBS = [
    *("run", "tick", "sweep", "next", "check", "status", "slots", "show", "audit", "replicas", "workers", "health"),
    *("retry", "rerun", "trigger", "backfill", "pause", "resume", "dead", "forget", "jobs", "simulate"),
]


@pytest.mark.parametrize("verb", [*VERBS, "jobs put", "jobs list", "jobs remove"])
def test_each_verb_teaches_itself_with_an_example(slotqueue: Slotqueue, verb: str) -> None:
    result = slotqueue(*verb.split(), "--help")
    assert result.exit_code == 0
    examples = result.stdout.partition("Examples:\n")[2]
    assert f"slotqueue {verb} " in examples


def test_the_help_lists_all_verbs_and_the_exit_codes(slotqueue: Slotqueue) -> None:
    result = slotqueue("--help")
    assert result.exit_code == 0
    commands = result.stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in commands.splitlines()] == [*VERBS, "demo"]
    assert "3 Redis is" in result.stdout


def test_the_version_is_said(slotqueue: Slotqueue) -> None:
    assert slotqueue("--version").stdout == f"slotqueue, version {version('slotqueue')}\n"


def test_an_unknown_verb_is_2(slotqueue: Slotqueue) -> None:
    result = slotqueue("nxt")
    assert result.exit_code == 2
    assert "No such command 'nxt'; did you mean 'next'?" in result.stderr


REFUSES = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "slotqueue.demo":
            raise ModuleNotFoundError("no module for it", name=name)
sys.meta_path.insert(0, Finder())
"""
UNFINISHED = "import sys, types\nsys.modules['slotqueue.demo'] = types.ModuleType('slotqueue.demo')\n"


@pytest.mark.parametrize("broken", [REFUSES, UNFINISHED])
def test_a_demo_that_cannot_be_imported_breaks_no_other_verb(folder: Path, start: Start, broken: str) -> None:
    (folder / "sitecustomize.py").write_text(broken)
    helped = start("--help", PYTHONPATH=str(folder))
    assert helped.process.wait(20) == 0, helped.err
    demo = start("demo", PYTHONPATH=str(folder))
    assert demo.process.wait(20) == 2
    (line,) = demo.err.splitlines()
    assert line.startswith("Error: `slotqueue demo` cannot be loaded")
    assert "pip install 'slotqueue[demo]'" in line


def test_a_verb_of_ours_that_cannot_be_imported_is_no_usage_error() -> None:
    verbs = Verbs(verbs={"x": Verb("slotqueue.nowhere:x", "")}, examples=())
    with pytest.raises(ModuleNotFoundError):
        verbs.get_command(None, "x")  # type: ignore[arg-type]


def test_help_imports_neither_the_demo_nor_a_worker_system() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom slotqueue.cli import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "print(*[name for name in ('arq', 'slotqueue.demo', 'rich', 'celery') if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.split() == []


def test_a_replica_loads_nothing_of_what_only_operators_ask() -> None:
    code = "import sys, slotqueue.cli.run\nprint(*(name for name in sys.modules if name.startswith('slotqueue.ops')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.split() == []


def test_the_entry_point_is_the_group() -> None:
    assert isinstance(main, Verbs)
