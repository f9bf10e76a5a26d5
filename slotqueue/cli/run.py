"""`slotqueue run`: one replica in the foreground."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import click

from slotqueue.app import SlotQueue
from slotqueue.cli.failing import FOUND_SOMETHING
from slotqueue.cli.loading import load_app
from slotqueue.cli.logs import log_to_stderr
from slotqueue.cli.options import app_argument, log_option
from slotqueue.cli.stopping import Stop, Stopped
from slotqueue.cli.teaching import Taught
from slotqueue.disabled import is_disabled
from slotqueue.errors import MissingExtra, SlotQueueError, WrongStore
from slotqueue.http import Endpoint, Server, address
from slotqueue.words import count

if TYPE_CHECKING:
    from slotqueue.metrics import Metrics

logger = logging.getLogger("slotqueue")
_LOOK_EVERY_SECONDS = 0.05
_ASK_SECONDS = 4.0


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue run app:slots --log-level warning", ""),
        ("slotqueue run app:slots --http 0.0.0.0:9100", "with /metrics, /livez and /readyz"),
    ],
)
@app_argument
@log_option("info")
@click.option("--http", metavar="HOST:PORT", help="Serve /metrics, /livez and /readyz there.")
@click.option(
    "--job-labels",
    type=click.IntRange(0, 100_000),
    default=1000,
    show_default=True,
    metavar="N",
    help="So many jobs have a label of their own in /metrics; 0 for none.",
)
@click.pass_context
def run(ctx: click.Context, app: str | None, log_level: str, http: str | None, job_labels: int) -> None:
    """Tick and sweep until told to stop: one replica. Start as many as you like, anywhere; they share the work.

    Prints "ready: ..." to stdout after its first pass, and logs to stderr. While Redis is away it keeps trying. Where
    Redis answers that it is the wrong one (the namespace is another application's, or it is a node of a cluster that
    was named as if it stood alone), it ends at once with exit code 2.
    SIGTERM, SIGHUP or Ctrl-C: it finishes the enqueue in hand and leaves within 5 s with exit code 0, also while Redis
    is unreachable. A second signal ends it at once.

    With --http it answers probes by the age of its own ticks, and metrics where slotqueue[metrics] is installed.
    """
    log_to_stderr(log_level)
    place = address(http) if http is not None else None
    with Stop() as stop:
        try:
            slots = load_app(app)
            asyncio.run(_run(slots, stop, place, job_labels))
        except Stopped:
            pass
        except (click.ClickException, SlotQueueError):
            raise
        except Exception:
            logger.exception("the replica ended by an error that nobody foresaw")
            ctx.exit(FOUND_SOMETHING)
    logger.info("stopped by %s", stop.heard or "itself")


async def _run(slots: SlotQueue, stop: Stop, place: tuple[str, int] | None, job_labels: int) -> None:
    event = stop.event()
    server = Server(Endpoint(slots, _metrics(slots, job_labels)), *place) if place is not None else None
    if server is not None:
        click.echo(f"http: http://{server.host}:{server.port}/metrics, /livez and /readyz")
    ready = asyncio.create_task(_say_when_ready(slots))
    try:
        await _refuse_a_wrong_store(slots, event)
        await slots.run(event)
    finally:
        ready.cancel()
        if server is not None:
            await asyncio.to_thread(server.close)


async def _refuse_a_wrong_store(slots: SlotQueue, stopping: asyncio.Event) -> None:
    """Ask once before the start: a supervisor sees a process that ends, and nobody sees one that tries in vain.

    Raises:
        WrongStore: only other settings help. An outage is no reason not to start.
    """
    if is_disabled():
        return
    asking = asyncio.create_task(slots.store.run(slots.store.verbs.open_keys(0, 1)))
    hearing = asyncio.create_task(stopping.wait())
    await asyncio.wait((asking, hearing), timeout=_ASK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    for each in (asking, hearing):
        each.cancel()
    answer, _ = await asyncio.gather(asking, hearing, return_exceptions=True)
    if isinstance(answer, WrongStore):
        await slots.close()
        raise answer


def _metrics(slots: SlotQueue, job_labels: int) -> Metrics | None:
    """The metrics of the replica; None where the extra is not installed."""
    try:
        from slotqueue.metrics import Metrics
    except MissingExtra as error:
        logger.warning("/metrics has nothing to say: %s", error)
        return None
    return Metrics(slots, per_job=job_labels > 0, most_jobs=job_labels)


async def _say_when_ready(slots: SlotQueue) -> None:
    while not slots.is_ready:  # noqa: ASYNC110 - readiness has no event of its own
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
    jobs = count(slots.pulse.jobs, "job")
    click.echo(f"ready: {jobs} in the namespace {slots.namespace!r}, {slots.store.place.said}")
