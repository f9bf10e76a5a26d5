"""How answers are printed: a table for people, aligned text for pipes and logs, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from slotqueue.cli.failing import printable
from slotqueue.ops.words import instant


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table.

    On a terminal cells are folded to its width. Elsewhere each row is one line and nothing is cut, so that a pipe or
    a narrow log still holds whole keys.
    """
    clean = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, clean)
        return
    widths = [max(map(len, cells)) for cells in zip(columns, *clean, strict=True)]
    for row in (columns, *clean):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values, a line each; those without a value are left out."""
    shown = [(name, printable(value)) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name.ljust(width)}  {value}")


def print_json(value: object) -> None:
    """Print one JSON value; instants in UTC."""
    click.echo(json.dumps(value, default=_plain, indent=2, ensure_ascii=False))


def counts_in_words(counts: Mapping[str, int], nothing: str) -> str:
    """Say counts that are not zero: "offered 3, won 3"."""
    return ", ".join(f"{word} {number}" for word, number in counts.items() if number) or nothing


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def _plain(value: Any) -> str:  # noqa: ANN401 - whatever json does not know
    if isinstance(value, datetime):
        return instant(value)
    raise TypeError(f"{type(value).__name__} is not for JSON")
