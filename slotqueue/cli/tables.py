"""How answers are printed: a table for people, aligned text for pipes and logs, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from slotqueue.cli.failing import printable
from slotqueue.words import count, instant

_GAP = 3
"""Between two columns."""
_EDGES = 2
_LEAST_FOLDED = 20
"""A column is folded down to this width before others are left out."""


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, drop: Sequence[str] = (), fold: str = ""
) -> None:
    """Print a table.

    On a terminal that is too narrow one column is folded and others are left out; every other cell stays on its line,
    so that keys and instants can be copied. Elsewhere each row is one line and nothing is cut or left out.

    Args:
        columns: their names.
        rows: their cells.
        drop: names of columns that may be left out, the most dispensable first.
        fold: the name of the column that may be folded, "" for none.
    """
    clean = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, clean, drop, fold)
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


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], drop: Sequence[str], fold: str) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    widths = {name: max(map(cell_len, (name, *cells))) for name, *cells in zip(columns, *rows, strict=True)}
    filled = {name for name, *cells in zip(columns, *rows, strict=True) if any(cells)}
    least = {name: min(width, _LEAST_FOLDED) if name == fold else width for name, width in widths.items()}
    shown = _fitting(least, [*(each for each in drop if each not in filled), *drop], console.width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        table.add_column(name, overflow="fold", no_wrap=name != fold, min_width=least[name])
    places = [columns.index(name) for name in shown]
    for row in rows:
        table.add_row(*(Text(row[at]) for at in places))
    console.print(table, crop=False)
    if left_out := len(filled.difference(shown)):
        click.echo(f"(--json or a wider terminal shows {count(left_out, 'more column')})")


def _fitting(least: Mapping[str, int], drop: Sequence[str], width: int) -> list[str]:
    """Choose the columns that fit."""
    shown = list(least)
    for name in drop:
        if sum(least[each] + _GAP for each in shown) - _GAP + _EDGES <= width:
            break
        if name in shown and len(shown) > 1:
            shown.remove(name)
    return shown


def _plain(value: Any) -> str:  # noqa: ANN401 - whatever json does not know
    if isinstance(value, datetime):
        return instant(value)
    raise TypeError(f"{type(value).__name__} is not for JSON")
