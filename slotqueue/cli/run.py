"""`slotqueue run`: one replica in the foreground."""

from __future__ import annotations

import asyncio
import logging

import click

from slotqueue.app import SlotQueue
from slotqueue.cli.failing import FOUND_SOMETHING
from slotqueue.cli.loading import load_app
from slotqueue.cli.logs import log_to_stderr
from slotqueue.cli.options import app_argument, log_option
from slotqueue.cli.stopping import Stop, Stopped
from slotqueue.cli.teaching import Taught
from slotqueue.errors import SlotQueueError
from slotqueue.ops.words import count

logger = logging.getLogger("slotqueue")
_LOOK_EVERY_SECONDS = 0.05


@click.command(cls=Taught, examples=[("slotqueue run app:slots --log-level warning", "")])
@app_argument
@log_option("info")
@click.pass_context
def run(ctx: click.Context, app: str | None, log_level: str) -> None:
    """Tick and sweep until told to stop: one replica. Start as many as you like, anywhere; they share the work.

    Prints "ready: ..." to stdout after its first pass, and logs to stderr. While Redis is away it keeps trying.
    SIGTERM, SIGHUP or Ctrl-C: it finishes the enqueue in hand and leaves within 5 s with exit code 0, also while Redis
    is unreachable. A second signal ends it at once.
    """
    log_to_stderr(log_level)
    with Stop() as stop:
        try:
            slots = load_app(app)
            asyncio.run(_run(slots, stop))
        except Stopped:
            pass
        except (click.ClickException, SlotQueueError):
            raise
        except Exception:
            logger.exception("the replica ended by an error that nobody foresaw")
            ctx.exit(FOUND_SOMETHING)
    logger.info("stopped by %s", stop.heard or "itself")


async def _run(slots: SlotQueue, stop: Stop) -> None:
    event = stop.event()
    ready = asyncio.create_task(_say_when_ready(slots))
    try:
        await slots.run(event)
    finally:
        ready.cancel()


async def _say_when_ready(slots: SlotQueue) -> None:
    while not slots.is_ready:  # noqa: ASYNC110 - readiness has no event of its own
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
    jobs = count(len(slots.jobs), "job")
    click.echo(f"ready: {jobs} in the namespace {slots.namespace!r}, {slots.store.place.said}")
