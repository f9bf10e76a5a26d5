"""`slotqueue tick` and `slotqueue sweep`: one pass each, for an external clock such as a Kubernetes CronJob."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import click

from slotqueue.app import SlotQueue
from slotqueue.cli.failing import FOUND_SOMETHING, say
from slotqueue.cli.loading import load_app
from slotqueue.cli.logs import log_to_stderr
from slotqueue.cli.options import app_argument, json_option, log_option
from slotqueue.cli.stopping import Stop, Stopped
from slotqueue.cli.tables import counts_in_words, print_json
from slotqueue.cli.teaching import Taught

_TICK_WORDS = ("offered", "won", "taken", "early", "held", "skipped", "queued", "sent", "stale", "refused", "broken")
_SWEEP_WORDS = (
    *("overdue", "enqueue", "done", "missed", "skipped", "lost", "dead", "gone", "unknown", "held", "later"),
    *("rejected", "queued", "sent", "stale", "refused", "broken"),
)
_BAD = ("refused", "broken")
_SWEEP_AGAIN_SECONDS = 1.0
_STOP_SECONDS = 3.5
"""How long a pass may go on after a signal, as in `slotqueue run`."""
_PUT_OFF_SECONDS = 6.5
"""The store puts a slot that cannot be judged yet off by 5 s at most."""

Pass = Callable[[SlotQueue, asyncio.Event], Awaitable[Counter[str]]]
"""One pass; the event says that it shall come to an end."""


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

    Exit code 1 where a queue refused a message (a sweep tries again), 3 where Redis is unavailable. SIGTERM or Ctrl-C:
    it finishes the enqueue in hand and leaves within 5 s, with 143 or 130; what it left is due at the next pass.

    Functions of the process (`@slots.job`) that the pass won run to their end before it is over. A signal hands their
    slots back.
    """
    log_to_stderr(log_level)
    counts = _make(ctx, app, lambda slots, _: slots.tick())
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

    Exit code 1 where a queue refused a message (the next sweep tries again), 3 where Redis is unavailable. SIGTERM or
    Ctrl-C: it finishes the enqueue in hand and leaves within 5 s, with 143 or 130.
    """
    log_to_stderr(log_level)
    counts = _make(ctx, app, lambda slots, stopping: _sweep(slots, wait, stopping))
    _print(ctx, {word: counts[word] for word in _SWEEP_WORDS}, "nothing was overdue", as_json=as_json)


async def _sweep(slots: SlotQueue, wait: float, stopping: asyncio.Event) -> Counter[str]:
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
        if not later or now - began + _SWEEP_AGAIN_SECONDS > wait or stopping.is_set():
            counts["later"] = later
            return counts
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _SWEEP_AGAIN_SECONDS)


def _make(ctx: click.Context, app: str | None, make: Pass) -> Counter[str]:
    """Make a pass; a signal ends the command once the enqueue in hand is finished."""
    counts: Counter[str] | None = None
    with Stop() as stop:
        with suppress(Stopped):
            counts = asyncio.run(_making(load_app(app), make, stop))
        if stop.heard:
            say(f"stopped by {stop.heard}" + ("" if counts is None else f": {counts_in_words(counts, 'nothing done')}"))
            ctx.exit(stop.exit_code)
    return counts or Counter()


async def _making(slots: SlotQueue, make: Pass, stop: Stop) -> Counter[str] | None:
    """Make a pass, cut short some time after a signal: None then."""
    stopping = stop.event()
    making, told = asyncio.ensure_future(make(slots, stopping)), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({making, told}, return_when=asyncio.FIRST_COMPLETED)
        if not making.done():
            await asyncio.gather(slots.hand_back(), asyncio.wait({making}, timeout=_STOP_SECONDS))
        return making.result() if making.done() else None
    finally:
        for each in (making, told):
            each.cancel()
        await asyncio.gather(making, told, return_exceptions=True)
        await slots.close()


def _print(ctx: click.Context, counts: dict[str, int], nothing: str, *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
    else:
        click.echo(counts_in_words(counts, nothing))
    if any(counts[word] for word in _BAD):
        ctx.exit(FOUND_SOMETHING)
