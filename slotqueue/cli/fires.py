"""`slotqueue next`: when jobs fire next."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

from slotqueue.cli.failing import Wrong, printable
from slotqueue.cli.instants import Instant
from slotqueue.cli.loading import load_app
from slotqueue.cli.options import json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, is_place_known, site_from
from slotqueue.errors import StoreUnavailable
from slotqueue.ops.fires import Fire, upcoming
from slotqueue.ops.in_force import InForce, in_force
from slotqueue.ops.site import Site
from slotqueue.words import did_you_mean, duration, instant

_MOST = 1000
_APP_FORM = re.compile(r"[\w./]+:[\w.]+")


@click.command(
    "next",
    cls=Taught,
    examples=[
        ("slotqueue next app:slots", "all jobs"),
        ("slotqueue next app:slots nightly -n 3", ""),
        ("slotqueue next app:slots nightly --after 2026-10-24T12:00Z", "across a clock change"),
        ("slotqueue next --redis redis://localhost:6379/0", "what the replicas of a namespace work by"),
    ],
)
@click.argument("words", nargs=-1, metavar="[MODULE:ATTRIBUTE] [JOB]")
@click.option("-n", "count", type=click.IntRange(1, _MOST), default=5, show_default=True, help="How many of each job.")
@click.option(
    "--after",
    type=Instant(),
    metavar="INSTANT",
    help="Start here instead of now: 2026-10-25T00:30; UTC without a zone.",
)
@click.option("--offline", is_flag=True, help="Do not ask Redis: only jobs in code.")
@site_options
@json_option
def next_fires(
    *,
    words: tuple[str, ...],
    count: int,
    after: datetime | None,
    offline: bool,
    redis: str | None,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Show when jobs fire next, in UTC and in the zone of the job's schedule.

    Jobs of the application, and those stored in Redis; where that does not answer, the application's alone. Without an
    application (--redis URL): the stored ones, and what replicas have made known.
    """
    app, name = _split(words, redis)
    site = Site.of(load_app(app)) if offline else site_from(app, redis, namespace)
    found = _in_code(site) if offline else ask(site, _in_force)
    schedules = found.schedules
    if name is not None:
        if name in found.untold:
            raise Wrong(f"only its application can tell the schedule of {name!r}: name it as MODULE:ATTRIBUTE")
        if name not in schedules:
            raise Wrong(f"there is no job {name!r}; {did_you_mean(name, schedules) or 'none is known there'}")
        schedules = {name: schedules[name]}
    now = after or datetime.now(UTC)
    fires = upcoming(schedules, after=now, count=count, namespace=site.namespace)
    if as_json:
        print_json([_facts(fire) for fire in fires])
    elif fires:
        columns = ["job", "UTC", "local", "zone", "in", "slot"]
        print_table(columns, [_row(fire, now) for fire in fires], drop=["slot", "zone", "in", "local"])
    else:
        click.echo("nothing fires any more" if schedules else "there are no jobs")
    if found.untold and name is None:
        click.echo(f"(only their application can tell when these fire: {', '.join(found.untold)})", err=True)


async def _in_force(site: Site) -> InForce:
    try:
        return await in_force(site)
    except StoreUnavailable as error:
        if site.app is None:
            raise
        click.echo(f"(only jobs in code: {printable(str(error))})", err=True)
        return _in_code(site)


def _in_code(site: Site) -> InForce:
    return InForce({name: job.schedule for name, job in (site.jobs or {}).items()})


def _split(words: tuple[str, ...], redis: str | None) -> tuple[str | None, str | None]:
    """Tell the application from the job: where that is known, a single word is a job unless it looks like one."""
    match words:
        case ():
            return None, None
        case (word,):
            is_app = not is_place_known(redis) or _APP_FORM.fullmatch(word)
            return (word, None) if is_app else (None, word)
        case (app, job):
            return app, job
        case _:
            raise Wrong("name one application and one job at most; a job's name with blanks needs quotes")


def _row(fire: Fire, now: datetime) -> list[str]:
    ahead = duration((fire.fire_time - now).total_seconds() * 1000)
    return [fire.job, instant(fire.fire_time), fire.local.isoformat(timespec="seconds"), fire.zone, ahead, fire.key]


def _facts(fire: Fire) -> dict[str, object]:
    return {
        "job": fire.job,
        "fire_time": fire.fire_time,
        "local": fire.local.isoformat(timespec="seconds"),
        "zone": fire.zone,
        "key": fire.key,
    }
