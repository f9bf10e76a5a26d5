"""docs/benchmarks.md, of which parts are made of what was measured: each between two marks, named by its benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_END = "<!-- end -->"


def insert(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Put a benchmark's part between its marks."""
    begin = f"<!-- made by `python -m benchmarks {name}`: begin -->"
    head, found, rest = document.read_text(encoding="utf-8").partition(begin)
    if not found:
        raise LookupError(f"{document}: no line {begin}")
    _, _, tail = rest.partition(_END)
    document.write_text(f"{head}{begin}\n\n{text}\n{_END}{tail}", encoding="utf-8")


def markdown(head: Sequence[str], *rows: Sequence[str]) -> list[str]:
    """A table: a name in the first column, figures in the others."""
    return [_row(head), "| --- |" + " ---: |" * (len(head) - 1), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells).lstrip() + " |"
