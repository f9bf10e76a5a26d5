"""The table of guarantees, made from what the tests of faults expect. `python -m tests.faults.table` rewrites it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.faults.arrows import GUARDED, IN_PROCESS, UNGUARDED, Fault, Outcome

BEGIN, END = "<!-- guarantees -->", "<!-- /guarantees -->"
ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "guarantees.md"]


def table() -> str:
    """What stands between the marks, in Markdown."""
    parts = [
        "With guarded workers (`@slots.worker`):",
        _rows(GUARDED),
        "Functions of the process (`@slots.job`), which the replica that won a slot runs itself:",
        _rows(IN_PROCESS),
        "With workers that are not guarded, whose messages are sent once:",
        _rows(UNGUARDED),
    ]
    return "\n\n".join(parts)


def written_in(document: Path) -> str | None:
    """The table that a document has now; None where it has no marks."""
    _, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    inside, end, _ = rest.partition(END)
    return inside.strip() if begin and end else None


def rewrite(document: Path) -> None:
    """Put the table between the marks of a document."""
    before, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        document.write_text(f"{before}{begin}\n{table()}\n{end}{after}", encoding="utf-8")


def _rows(faults: Sequence[Fault]) -> str:
    lines = ['| killed | `on_crash="complete"` | `on_crash="skip"` |', "| --- | --- | --- |"]
    for fault in faults:
        skip = "the same" if fault.skip == fault.complete else _cell(fault.skip)
        lines.append(f"| {fault.victim}, {fault.arrow} | {_cell(fault.complete)} | {skip} |")
    return "\n".join(lines)


def _cell(outcome: Outcome) -> str:
    runs = {0: "no run", 1: "1 run"}.get(outcome.runs, f"{outcome.runs} runs")
    return f"{runs}, `{outcome.state}`. {outcome.words}"


if __name__ == "__main__":
    for each in DOCUMENTS:
        if each.exists():
            rewrite(each)
