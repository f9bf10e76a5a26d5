"""`slotqueue simulate`: days of schedule in seconds, with processes that die."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from slotqueue.cli.failing import FOUND_SOMETHING
from slotqueue.cli.instants import Instant
from slotqueue.cli.loading import load_app
from slotqueue.cli.options import app_argument, json_option
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.slots import SlotState
from slotqueue.testing.ledger import JobLedger, Ledger
from slotqueue.testing.simulation import simulate as simulate_slots
from slotqueue.words import count, instant

_DAY = timedelta(days=1)


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue simulate app:slots --from 2026-03-28 --to 2026-03-30", "across a clock change"),
        ("slotqueue simulate app:slots --crash 0.02 --seed 7", "at each step of each slot one of fifty dies"),
    ],
)
@app_argument
@click.option(
    "--from",
    "start",
    type=Instant(),
    metavar="INSTANT",
    help="Slots due from here on; UTC without a zone.  [default: now]",
)
@click.option(
    "--to",
    "end",
    type=Instant(),
    metavar="INSTANT",
    help="... and before this; UTC without a zone.  [default: a day later]",
)
@click.option("--replicas", type=click.IntRange(1, 100), default=5, show_default=True, help="How many at a time.")
@click.option(
    "--crash",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="The probability that the replica or worker dies, at each step of each slot.",
)
@click.option("--takes", type=float, default=1.0, show_default=True, help="Seconds that each function runs.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of chance; the same one repeats the same end.")
@json_option
@click.pass_context
def simulate(  # noqa: PLR0913 - click gives an argument for each option
    ctx: click.Context,
    *,
    app: str | None,
    start: datetime | None,
    end: datetime | None,
    replicas: int,
    crash: float,
    takes: float,
    seed: int,
    as_json: bool,
) -> None:
    """Let replicas and workers handle all slots of a while, some of them dying: days in seconds.

    Calls no function of yours, and asks neither your Redis nor your broker: it starts a Valkey of its own, on which the
    real scripts run in a time that jumps from event to event.

    Exit code 1 where a slot had no end.
    """
    slots = load_app(app)
    first = start or datetime.now(UTC).replace(microsecond=0)
    last = end or first + _DAY
    ledger = asyncio.run(simulate_slots(slots, first, last, replicas=replicas, crash=crash, takes=takes, seed=seed))
    if as_json:
        print_json(asdict(ledger))
    else:
        _print(ledger)
    if any(state.is_open for job in ledger.jobs.values() for state in job.states):
        ctx.exit(FOUND_SOMETHING)


def _print(ledger: Ledger) -> None:
    columns = ["job", "slots", "attempts", "claims", "enqueues", "runs", "ended"]
    print_table(columns, [_row(job) for job in ledger.jobs.values()], fold="ended")
    for step, deaths in ledger.crashes.items():
        click.echo(f"died {step}: {deaths}")
    replicas = count(ledger.replicas, "replica")
    click.echo(f"{replicas}, slots from {instant(ledger.start)} to {instant(ledger.end)}")


def _row(job: JobLedger) -> list[str]:
    figures = [job.due, job.attempts, job.claims, job.enqueues, job.runs]
    return [job.job, *map(str, figures), _ends(job.states)]


def _ends(states: Mapping[SlotState, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in states.items())
