"""The tables of growth in docs/benchmarks.md: what more replicas cost, and what more jobs cost, slotqueue alone."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from benchmarks import document, idle, replicas
from benchmarks.replicas import BURST, LARGE, REPLICAS, Cost
from benchmarks.report import machine

PARTS = ("second", "burst", "jobs")


def main(arguments: Sequence[str]) -> int:
    """Measure what is asked for, print it, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks replicas", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part of it; may be said again")
    parser.add_argument("--replicas", type=_numbers, default=REPLICAS, metavar="N,...", help="1,3,10,50")
    parser.add_argument("--large", action="store_true", help=f"a burst of {LARGE:,} as well")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md, in place of all")
    asked = parser.parse_args(arguments)
    about = machine()
    print(about, flush=True)
    lines = [f"Measured on {datetime.now(UTC):%Y-%m-%d}: {about}.", ""]
    parts = asked.only or PARTS
    if "second" in parts:
        lines += second_table(_told(replicas.second(count) for count in asked.replicas))
    if "burst" in parts:
        for jobs in (BURST, LARGE) if asked.large else (BURST,):
            lines += burst_table(_told(replicas.burst(count, jobs) for count in asked.replicas))
    if "jobs" in parts:
        lines += jobs_table({jobs: idle.measure(jobs) for jobs in idle.LISTS})
    text = "\n".join(lines)
    print(f"\n{text}")
    if asked.write:
        document.insert("replicas", text)
    return 0


def second_table(costs: Sequence[Cost]) -> list[str]:
    """What a job a second costs."""
    return _table(
        "A job each second, more replicas",
        [
            ("replicas", lambda each: str(each.replicas)),
            ("commands sent, a slot and replica", lambda each: f"{each.sent:.1f}"),
            ("by its winner", lambda each: _shown(each.split and each.split[0])),
            ("by each other", lambda each: _shown(each.split and each.split[1])),
            *_shared("ms", 1_000),
        ],
        costs,
    )


def burst_table(costs: Sequence[Cost]) -> list[str]:
    """What a burst costs."""
    return _table(
        f"{costs[0].slots:,} jobs at one instant, more replicas",
        [
            ("replicas", lambda each: str(each.replicas)),
            ("last in the queue, s", lambda each: _shown(each.last, 2)),
            ("commands sent, in all", lambda each: f"{each.spent.scripts:,}"),
            ("for 1,000 slots, a replica", lambda each: f"{each.sent * 1000:.1f}"),
            *_shared("us", 1_000_000),
        ],
        costs,
    )


def jobs_table(found: dict[int, dict[str, float]]) -> list[str]:
    """What idling costs, and idling beside a job a second."""
    head = ["jobs", "ready, s", "memory, MB", "CPU, % of a core", "commands sent, a second",
            "CPU with a job each second", "commands with it", "its p99, ms"]  # fmt: skip
    rows = [
        [
            f"{jobs:,}",
            f"{each['from the first add to ready']:.1f}",
            f"{each['memory over an empty process']:.0f}",
            f"{each['share of a core']:.2f}",
            f"{each['commands sent to Redis']:.1f}",
            f"{each['with that one, share of a core']:.2f}",
            f"{each['with that one, commands sent to Redis']:.1f}",
            f"{each['one more in the middle of them, p99']:.0f}",
        ]
        for jobs, each in found.items()
    ]
    return ["### More jobs, of which none is due, one replica", "", *document.markdown(head, *rows), ""]


Column = tuple[str, Callable[[Cost], str]]


def _shared(unit: str, a_second: int) -> list[Column]:
    return [
        ("kB to Redis, a slot", lambda each: f"{each.spent.received / each.slots / 1000:.2f}"),
        (f"Redis's CPU, {unit} a slot", lambda each: f"{each.spent.seconds / each.slots * a_second:,.0f}"),
        (f"CPU of all replicas, {unit} a slot", lambda each: f"{each.cpu / each.slots * a_second:,.0f}"),
        ("replicas that won", lambda each: str(each.winners)),
        ("missing", lambda each: str(each.missing)),
        ("twice", lambda each: str(each.twice)),
    ]


def _table(title: str, columns: Sequence[Column], costs: Sequence[Cost]) -> list[str]:
    rows = [[show(each) for _, show in columns] for each in costs]
    return [f"### {title}", "", *document.markdown([name for name, _ in columns], *rows), ""]


def _shown(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _told(costs: Iterable[Cost]) -> list[Cost]:
    """All of them, each printed as soon as it is there."""
    found = []
    for cost in costs:
        print(*cost.figures(), sep="\n", flush=True)
        found.append(cost)
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))
