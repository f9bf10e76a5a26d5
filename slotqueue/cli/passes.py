"""`slotqueue tick` and `slotqueue sweep`: one pass each, for an external clock such as a Kubernetes CronJob."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import click

from slotqueue.app import SlotQueue
from slotqueue.cli.failing import FOUND_SOMETHING
from slotqueue.cli.loading import load_app
from slotqueue.cli.logs import log_to_stderr
from slotqueue.cli.options import app_argument, json_option, log_option
from slotqueue.cli.tables import counts_in_words, print_json
from slotqueue.cli.teaching import Taught

_TICK_WORDS = ("offered", "won", "taken", "early", "skipped", "queued", "sent", "stale", "refused", "broken")
_SWEEP_WORDS = (
    *("overdue", "enqueue", "done", "missed", "skipped", "lost", "dead", "gone", "unknown", "later"),
    *("rejected", "queued", "sent", "stale", "refused", "broken"),
)
_BAD = ("refused", "broken")
_SWEEP_AGAIN_SECONDS = 1.0
_PUT_OFF_SECONDS = 6.5
"""The store puts a slot that cannot be judged yet off by 5 s at most."""


@click.command(
    cls=Taught,
    examples=[
        (
            'sh -c "slotqueue tick app:slots; slotqueue sweep app:slots"',
            'the command of a Kubernetes CronJob with the schedule "* * * * *"',
        )
    ],
)
@app_argument
@json_option
@log_option("warning")
@click.pass_context
def tick(ctx: click.Context, app: str | None, as_json: bool, log_level: str) -> None:  # noqa: FBT001 - click's call
    """Make one pass: claim and enqueue what is due; print what came of it.

    For an external clock in place of `slotqueue run`. Any process may make the pass: what fell due since the last one
    is caught up by the namespace's own memory, within each job's lookback. A job is new at its first pass, and owes
    nothing from before. Crashed runs are the business of `slotqueue sweep`.

    Exit code 1 where a queue refused a message (a sweep tries again), 3 where Redis is unavailable.
    """
    log_to_stderr(log_level)
    counts = _make(load_app(app), lambda slots: slots.tick())
    _print(ctx, {word: counts[word] for word in _TICK_WORDS}, "nothing was due", as_json=as_json)


@click.command(cls=Taught, examples=[("slotqueue sweep app:slots --json", "")])
@app_argument
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to stay for runs whose workers fell silent: a lease may be judged only after a third of it.",
)
@json_option
@log_option("warning")
@click.pass_context
def sweep(ctx: click.Context, app: str | None, wait: float, as_json: bool, log_level: str) -> None:  # noqa: FBT001
    """Make one pass: take over open slots past their deadline, by their own policies; print what came of it.

    For an external clock in place of `slotqueue run`. Where a worker fell silent in the middle of a run, the pass
    stays in contact with Redis for a third of that lease (20 s by default) before it judges: after an outage, nobody
    could have renewed it.

    Exit code 1 where a queue refused a message (the next sweep tries again), 3 where Redis is unavailable.
    """
    log_to_stderr(log_level)
    counts = _make(load_app(app), lambda slots: _sweep(slots, wait))
    _print(ctx, {word: counts[word] for word in _SWEEP_WORDS}, "nothing was overdue", as_json=as_json)


async def _sweep(slots: SlotQueue, wait: float) -> Counter[str]:
    """Sweep once, and on while slots were put off that could not be judged yet; `later` counts those that still are."""
    counts: Counter[str] = Counter()
    later, began = 0, time.monotonic()
    heard_at = began
    while True:
        found = await slots.sweep()
        now = time.monotonic()
        if found["overdue"]:
            later, heard_at = found["later"], now
        elif now - heard_at > _PUT_OFF_SECONDS:
            later = 0  # another replica has seen to them
        counts.update({word: number for word, number in found.items() if word != "later"})
        if not later or now - began + _SWEEP_AGAIN_SECONDS > wait:
            counts["later"] = later
            return counts
        await asyncio.sleep(_SWEEP_AGAIN_SECONDS)


def _make(slots: SlotQueue, make: Callable[[SlotQueue], Awaitable[Counter[str]]]) -> Counter[str]:
    async def making() -> Counter[str]:
        try:
            return await make(slots)
        finally:
            await slots.close()

    return asyncio.run(making())


def _print(ctx: click.Context, counts: dict[str, int], nothing: str, *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
    else:
        click.echo(counts_in_words(counts, nothing))
    if any(counts[word] for word in _BAD):
        ctx.exit(FOUND_SOMETHING)
