"""`slotqueue pause` and `resume`: slots that fall due meanwhile are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

import click

from slotqueue.cli.failing import Wrong, printable
from slotqueue.cli.instants import Ahead
from slotqueue.cli.options import json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.cli.words import split_app
from slotqueue.ops.pauses import Pause, check_paused, next_fires, pauses
from slotqueue.ops.pauses import pause as pause_jobs
from slotqueue.ops.pauses import resume as resume_jobs
from slotqueue.ops.site import Site
from slotqueue.words import count, instant

_WORDS = "[MODULE:ATTRIBUTE] [JOB]..."
Fires = Mapping[str, Sequence[datetime] | None]
all_option = click.option("--all", "is_all", is_flag=True, help="All jobs.")


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue pause nightly digest --why 'database upgrade' --redis redis://localhost:6379/0", ""),
        ("slotqueue pause --all --until 2h --redis redis://localhost:6379/0", "it ends by itself"),
        ("slotqueue pause --redis redis://localhost:6379/0", "which pauses are there?"),
    ],
)
@click.argument("words", nargs=-1, metavar=_WORDS)
@all_option
@click.option(
    "--until",
    type=Ahead(),
    metavar="INSTANT|SPAN",
    help="It ends then: 2026-10-25T00:30 (UTC without a zone), or in 2h.",
)
@click.option("--why", default="", metavar="TEXT", help="For those who ask later.")
@site_options
@json_option
def pause(
    words: tuple[str, ...],
    is_all: bool,  # noqa: FBT001 - click's call
    until: datetime | None,
    why: str,
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Pause jobs: slots that fall due meanwhile are recorded as skipped, and are not caught up afterwards.

    Messages that are queued and were never begun are skipped when a worker takes them; runs that have begun go on.
    Without a job it lists the pauses.
    """
    app, jobs = split_app(words, redis)
    if is_all and jobs:
        raise Wrong("name jobs, or say --all")
    site = site_from(app, redis, namespace)
    if not is_all and not jobs:
        if until or why:
            raise Wrong("say what to pause: jobs, or --all")
        found = ask(site, pauses)
    else:
        found = ask(site, lambda site: pause_jobs(site, None if is_all else jobs, until=until, why=why))
    if as_json:
        print_json([asdict(each) for each in found])
    elif found:
        print_table(
            ["paused", "until", "since", "by", "why"], [_row(each) for each in found], drop=["since"], fold="why"
        )
    else:
        click.echo("nothing is paused")


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue resume nightly --redis redis://localhost:6379/0", ""),
        ("slotqueue resume app:slots --all --dry-run", "what would fire next?"),
    ],
)
@click.argument("words", nargs=-1, metavar=_WORDS)
@all_option
@click.option("--dry-run", is_flag=True, help="Only show what would fire next.")
@site_options
@json_option
def resume(
    words: tuple[str, ...],
    is_all: bool,  # noqa: FBT001 - click's call
    dry_run: bool,  # noqa: FBT001 - click's call
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Let paused jobs go on with the next slot that falls due: what fell due meanwhile stays skipped.

    --all ends the pause of all jobs, and no pause of a single one. Exit code 2 where a job is not paused.
    """
    app, jobs = split_app(words, redis)
    if is_all == bool(jobs):
        raise Wrong("name jobs, or say --all")
    wanted: Sequence[str] | None = None if is_all else jobs

    async def asking(site: Site) -> tuple[Fires, bool]:
        names = await check_paused(site, wanted)
        if not dry_run:
            await resume_jobs(site, wanted)
        return await next_fires(site, names), any(each.job is None for each in await pauses(site))

    fires, are_all_paused = ask(site_from(app, redis, namespace), asking)
    if as_json:
        times = {name: found or () for name, found in fires.items()}
        print_json(times if dry_run else {"resumed": jobs, "all": is_all, "next": times})
        return
    if dry_run:
        _print_next(fires, "would fire next (UTC)")
        click.echo(f"{count(len(fires), 'job')} would go on; nothing was changed")
        return
    done = printable("all jobs" if is_all else ", ".join(jobs))
    if are_all_paused:
        click.echo(f"{done}: no pause of its own any more; but all jobs are paused: `slotqueue resume --all`")
        return
    click.echo(f"{done}: going on with the next slot")
    _print_next(fires, "fires next (UTC)")


def _print_next(fires: Fires, title: str) -> None:
    rows = [
        [name, "not known: name its application" if found is None else ", ".join(map(instant, found)) or "never"]
        for name, found in fires.items()
    ]
    if rows:
        print_table(["job", title], rows)


def _row(each: Pause) -> list[str]:
    return [
        each.job or "all jobs",
        instant(each.until) if each.until else "you resume it",
        instant(each.since) if each.since else "",
        each.by,
        each.why,
    ]
