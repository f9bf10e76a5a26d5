"""Tables: folded on a terminal, whole lines elsewhere."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime

import pytest

from slotqueue.cli import tables
from slotqueue.cli.failing import printable

KEY = "ran:a-name-that-is-longer-than-the-terminal-is-wide:2026-10-02T03:00"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_narrow_terminal_no_character_of_a_key_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    tables.print_table(["slot", "state"], [[KEY, "[bold]done[/bold]"]])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[1].split() == ["slot", "state"]
    assert KEY in "".join(line.split()[0] for line in lines[3:] if line.strip())
    assert "[bold]" in terminal.getvalue()


def test_elsewhere_columns_are_aligned_and_lines_end_clean(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_table(["slot", "note"], [[KEY, ""], ["short", "a\nb"]])
    assert capsys.readouterr().out.splitlines() == [
        f"{'slot'.ljust(len(KEY))}  note",
        KEY,
        f"{'short'.ljust(len(KEY))}  a\\nb",
    ]


def test_an_empty_table_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_table(["slot", "note"], [])
    assert capsys.readouterr().out == "slot  note\n"


def test_json_says_instants_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_json({"at": datetime(2026, 10, 2, 3, 0, tzinfo=UTC), "job": "großer Bericht"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"at": "2026-10-02T03:00:00Z", "job": "großer Bericht"}
    with pytest.raises(TypeError):
        tables.print_json({"at": object()})


def test_what_could_steer_a_terminal_is_escaped() -> None:
    assert printable("a\x1b[31m\u202eb\udc80") == r"a\x1b[31m\u202eb\udc80"
    assert printable("grün 日本") == "grün 日本"
