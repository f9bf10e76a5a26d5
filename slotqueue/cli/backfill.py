"""`slotqueue backfill`: the past slots of a job, oldest first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import click

from slotqueue.cli.failing import printable, say
from slotqueue.cli.instants import Instant
from slotqueue.cli.options import json_option, site_options
from slotqueue.cli.stopping import Stop, Stopped
from slotqueue.cli.tables import print_json
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.cli.words import Rate, one, split_app
from slotqueue.ops.backfill import MOST_SLOTS, Progress, Range, survey
from slotqueue.ops.backfill import backfill as run_backfill
from slotqueue.ops.site import Site
from slotqueue.words import count, instant


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue backfill app:slots nightly --from 2026-09-01 --to 2026-10-01 --dry-run", "what is missing?"),
        ("slotqueue backfill app:slots nightly --from 2026-09-01 --to 2026-10-01 --max-open 5 --rate 10/s", ""),
    ],
)
@click.argument("words", nargs=-1, required=True, metavar="[MODULE:ATTRIBUTE] JOB")
@click.option(
    "--from",
    "start",
    type=Instant(),
    required=True,
    metavar="INSTANT",
    help="The first fire time, or before; UTC without a zone.",
)
@click.option(
    "--to",
    "end",
    type=Instant(),
    required=True,
    metavar="INSTANT",
    help="Beyond the last fire time; UTC without a zone.",
)
@click.option("--max-open", type=click.IntRange(1), metavar="N", help="Wait while N slots of the range have not ended.")
@click.option("--rate", type=Rate(), metavar="RATE", help="Slow down: 10/s, 600/min.")
@click.option(
    "--most", type=click.IntRange(1), default=MOST_SLOTS, show_default=True, help="Refuse more slots than that."
)
@click.option("--dry-run", is_flag=True, help="Only tell where the slots stand, and how many would run.")
@site_options
@json_option
@click.pass_context
def backfill(  # noqa: PLR0913, PLR0917 - click's call
    ctx: click.Context,
    words: tuple[str, ...],
    start: datetime,
    end: datetime,
    max_open: int | None,
    rate: float | None,
    most: int,
    dry_run: bool,  # noqa: FBT001 - click's call
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Have the past slots of a job run, oldest first: fire times from --from (inclusive) to --to (exclusive).

    Slots that have no record, were skipped or missed are run; those that are done, on their way, dead or lost are left
    alone. So it may be broken off and called again. Records expire: beyond `history`, a slot that was done long ago has
    no record either, and --dry-run tells the two apart.

    It ends once the last slot is on its way. Of a job that lets no two slots be out it waits for each. SIGTERM or
    Ctrl-C: it finishes the slots in hand and leaves, with 143 or 130.
    """
    app, rest = split_app(words, redis)
    job = one(rest, "job")
    site = site_from(app, redis, namespace)
    found: list[Range] = []

    async def act(site: Site) -> Progress | None:
        stopping = stop.event()
        found.append(await survey(site, job, start, end, most=most))
        if dry_run:
            return None
        with _bar(len(found[0].wanted)) as on_progress:
            return await run_backfill(
                site, found[0], max_open=max_open, rate=rate, on_progress=on_progress, stopping=stopping
            )

    done: Progress | None = None
    with Stop() as stop, suppress(Stopped):
        done = ask(site, act)
    if stop.heard and (done is None or done.decided < done.total):
        how_far = f"{done.decided} of {count(done.total, 'slot')} are on their way; " if done is not None else ""
        say(f"broken off by {stop.heard}: {how_far}call it again, and it goes on where it stopped")
        ctx.exit(stop.exit_code)
    if as_json:
        print_json(_facts(found[0], done))
    else:
        _print(found[0], done)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[Progress], None]]:
    """A progress bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def show(progress: Progress) -> None:
            waits = f"waits for {progress.waits_for}" if progress.waits_for else ""
            bar.update(task, completed=progress.decided, description=waits)

        yield show


def _print(found: Range, done: Progress | None) -> None:
    total, wanted = len(found.standing), len(found.wanted)
    click.echo(printable(f"{count(total, 'slot')} of {found.job} from {instant(found.start)} to {instant(found.end)}:"))
    for state, number in found.counts.most_common():
        click.echo(f"  {number:>6}  {state}")
    if done is None:
        click.echo(f"{count(wanted, 'slot')} would run: those without a record, skipped or missed; nothing was changed")
        return
    words = ", ".join(f"{word} {number}" for word, number in done.counts.items())
    click.echo(f"{count(wanted, 'slot')} to run{f': {words}' if words else ''}")


def _facts(found: Range, done: Progress | None) -> dict[str, object]:
    return {
        "job": found.job,
        "start": found.start,
        "end": found.end,
        "slots": len(found.standing),
        "standing": dict(found.counts),
        "wanted": found.wanted,
        "done": dict(done.counts) if done is not None else None,
    }
