"""The tables of docs/benchmarks.md, made of the results alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import document
from benchmarks.peers.results import Results, Subject


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of all peers.

    Args:
        digits: behind the point.
        absent: what stands where the scenario was measured and had no such figure.
        exact: a figure of which every repeat counts, such as messages that are missing: the worst is shown.
        judged: whether the lowest is the best.
    """

    title: str
    scenario: str
    figure: str
    digits: int = 0
    absent: str = "-"
    exact: bool = False
    judged: bool = True

    def values(self, subject: Subject) -> list[float]:
        """One value for each repeat."""
        return subject.figures.get(self.scenario, {}).get(self.figure, [])

    def middle(self, subject: Subject) -> float | None:
        """What is compared, as it is shown."""
        values = self.values(subject)
        if not values:
            return None
        return round(max(values) if self.exact else statistics.median(values), self.digits)

    def cell(self, subject: Subject, best: float | None) -> str:
        """Median and spread; in bold where it is the best."""
        if self.scenario in subject.failures:
            return "failed"
        middle = self.middle(subject)
        if middle is None:
            return self.absent if self.scenario in subject.figures else ""
        shown = f"{middle:,.{self.digits}f}"
        if self.judged and middle == best:
            shown = f"**{shown}**"
        lowest, highest = (f"{edge(self.values(subject)):,.{self.digits}f}" for edge in (min, max))
        return shown if self.exact or lowest == highest else f"{shown} ({lowest} to {highest})"


@dataclass(frozen=True, slots=True)
class Table:
    """What belongs together."""

    title: str
    columns: Sequence[Column]
    plot: str = ""

    def lines(self, results: Results) -> list[str]:
        """As Markdown. Peers without any of these figures have no row, and figures that none has no column."""
        rows = [["", *(column.title for column in self.columns)]]
        best = [self._best(column, results) for column in self.columns]
        for subject in results.subjects.values():
            cells = [column.cell(subject, most) for column, most in zip(self.columns, best, strict=True)]
            if any(cells):
                rows.append([subject.name, *cells])
        if len(rows) == 1:
            return []
        columns = [cells for cells in zip(*rows, strict=True) if not _NOTHING.issuperset(cells[1:])]
        return [f"### {self.title}", "", *document.markdown(*zip(*columns, strict=True)), ""]

    @staticmethod
    def _best(column: Column, results: Results) -> float | None:
        """The lowest, where not all have it."""
        found = [middle for each in results.subjects.values() if (middle := column.middle(each)) is not None]
        return min(found) if len(set(found)) > 1 else None


_NOTHING = {"", "-"}
_NOT_ALL = "not all in 60 s"
TABLES = (
    Table(
        "A job each second, three replicas",
        (
            Column("late p50, ms", "second", "late p50", 1),
            Column("p99", "second", "late p99", 1),
            Column("worst", "second", "late worst", 1),
            Column("messages a slot", "second", "messages a slot", 2),
            Column("slots missed", "second", "missed", exact=True),
            Column("server commands, a slot and replica", "second", "commands", 1),
            Column("of these sent", "second", "sent", 1),
        ),
        plot="lateness",
    ),
    Table(
        "Jobs due at one instant, three replicas",
        (
            Column("1,000: last in the queue, s", "burst 1,000", "seconds", 2, _NOT_ALL),
            Column("twice", "burst 1,000", "twice", exact=True),
            Column("missing", "burst 1,000", "missing", exact=True),
            Column("10,000: last in the queue, s", "burst 10,000", "seconds", 2, _NOT_ALL),
            Column("twice", "burst 10,000", "twice", exact=True),
            Column("missing", "burst 10,000", "missing", exact=True),
        ),
        plot="burst",
    ),
    Table(
        "The replica that sent last is killed, a job each second, three replicas",
        (
            Column("silence beyond the usual second, s", "killed", "gap", 2, "over 60"),
            Column("seconds without a message", "killed", "lost", 0, "over 60", exact=True),
        ),
    ),
    Table(
        "10,000 daily jobs, none due, one replica",
        (
            Column("at rest after, s", "idle", "ready", 1, "never"),
            Column("CPU, % of a core", "idle", "cpu", 1),
            Column("memory, MB", "idle", "memory"),
            Column("server's CPU, % of a core", "idle", "server cpu", 1),
        ),
    ),
    Table(
        "More replicas: 1,000 jobs at one instant",
        tuple(
            Column(f"{title}, {count} replica{'s' * (count > 1)}", "growth of replicas", f"{figure} {count}", digits)
            for figure, title, digits in (("commands", "server commands", 0), ("cpu", "CPU of all, s", 1))
            for count in (1, 10, 50)
        ),
    ),
    Table(
        "More jobs: none due, one replica",
        tuple(
            Column(f"{title}, {count:,} jobs", "growth of jobs", f"{figure} {count}", digits)
            for figure, title, digits in (("ready", "at rest after, s", 1), ("cpu", "CPU, %", 1), ("memory", "MB", 0))
            for count in (100, 100_000)
        ),
        plot="growth",
    ),
)


def made(results: Results) -> str:
    """All that the document says of the results."""
    if not results.subjects:
        return "Nothing was measured yet.\n"
    lines = [f"Measured on {results.date}: {results.machine}. Medians, in brackets the lowest and the highest of the",
             "repeats; the best of each column is bold.", ""]  # fmt: skip
    for table in TABLES:
        rows = table.lines(results)
        lines += rows
        if rows and table.plot:
            lines += [f"![{table.title}](benchmarks/{table.plot}.svg)", ""]
    lines += ["### How each was set up", ""]
    for subject in results.subjects.values():
        versions = ", ".join(f"{name} {version}" for name, version in subject.versions.items())
        setup = f"{subject.setup}. [Its documentation]({subject.documentation}). {subject.remarks}".rstrip()
        lines.append(f"- **{subject.name}** ({versions}): {setup}")
        lines += [f"    - failed: {scenario}: {why}" for scenario, why in subject.failures.items()]
    return "\n".join([*lines, ""])


def insert(results: Results, path: Path = document.DOCUMENT) -> None:
    """Put it into the document."""
    document.insert("peers", made(results), path)
