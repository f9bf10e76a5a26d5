"""`slotqueue next`: when jobs fire next."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

import click

from slotqueue.cli.failing import Wrong
from slotqueue.cli.instants import Instant
from slotqueue.cli.loading import APP_VARIABLE, load_app
from slotqueue.cli.options import json_option
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.ops.fires import Fire, upcoming
from slotqueue.ops.words import did_you_mean, duration, instant

_MOST = 1000
_APP_FORM = re.compile(r"[\w./]+:[\w.]+")


@click.command(
    "next",
    cls=Taught,
    examples=[
        ("slotqueue next app:slots", "all jobs"),
        ("slotqueue next app:slots nightly -n 3", ""),
        ("slotqueue next app:slots nightly --after 2026-10-24T12:00Z", "across a clock change"),
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
@json_option
def next_fires(words: tuple[str, ...], count: int, after: datetime | None, as_json: bool) -> None:  # noqa: FBT001
    """Show when jobs fire next, in UTC and in the zone of the job's schedule. Asks no Redis."""
    app, name = _split(words)
    slots = load_app(app)
    if name is not None and name not in slots.jobs:
        raise Wrong(f"there is no job {name!r}; {did_you_mean(name, slots.jobs) or 'the application has none'}")
    jobs = slots.jobs.values() if name is None else [slots.jobs[name]]
    now = after or datetime.now(UTC)
    fires = upcoming(jobs, after=now, count=count, namespace=slots.namespace)
    if as_json:
        print_json([_facts(fire) for fire in fires])
    elif fires:
        columns = ["job", "UTC", "local", "zone", "in", "slot"]
        print_table(columns, [_row(fire, now) for fire in fires], drop=["slot", "zone", "in", "local"])
    else:
        click.echo("nothing fires any more" if slots.jobs else "the application has no jobs")


def _split(words: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Tell the application from the job: with SLOTQUEUE_APP set, a single word is a job unless it looks like one."""
    match words:
        case ():
            return None, None
        case (word,):
            is_app = not os.environ.get(APP_VARIABLE) or _APP_FORM.fullmatch(word)
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
