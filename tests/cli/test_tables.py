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


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> Terminal:
    """Let the output be a terminal from now on; a fixture could not, pytest captures each phase anew."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return terminal


def lines_of(terminal: Terminal) -> list[str]:
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()]


def test_on_a_narrow_terminal_a_key_stays_whole_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch, 40)
    tables.print_table(["slot", "state"], [[KEY, "[bold]done[/bold]"]], drop=["state"])
    assert any(KEY in line for line in lines_of(terminal))


def test_columns_are_left_out_by_their_order_and_the_last_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    key, at, note = "ran:nightly:2026-10-02T03:00", "2026-10-02T03:00:31.123Z", "words " * 20
    columns = ["slot", "enqueues", "worker", "ended", "note"]
    row = [key, "1", "worker-17-abc", at, note]
    tables.print_table(columns, [row], drop=["enqueues", "worker", "ended"], fold="note")
    lines = lines_of(terminal)
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if "slot" in line).split() == ["slot", "ended", "note"]
    assert at in next(line for line in lines if key in line)
    assert " ".join(lines).count("words") == 20
    assert lines[-1] == "(--json or a wider terminal shows 2 more columns)"


def test_what_fits_is_shown_with_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    tables.print_table(["slot", "state"], [["short", "[bold]done[/bold]"]], drop=["state"])
    assert lines_of(terminal)[1].split() == ["slot", "state"]
    assert "[bold]" in terminal.getvalue()
    assert "wider" not in terminal.getvalue()


def test_an_empty_column_goes_before_a_full_one(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    tables.print_table(["slot", "late", "worker", "state"], [["x" * 60, "5 s", "", "done"]], drop=["late", "worker"])
    assert lines_of(terminal)[1].split() == ["slot", "late", "state"]


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
