"""`slotqueue status`: a row for each job."""

from __future__ import annotations

from dataclasses import asdict

import click

from slotqueue.cli.failing import FOUND_SOMETHING
from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.watching import watch_option, watching
from slotqueue.cli.where import site_from
from slotqueue.ops.status import JobStatus, Status
from slotqueue.ops.status import status as status_of
from slotqueue.words import count, instant, nothing_known

_COLUMNS = [
    *("job", "fires", "last slot", "state", "next (UTC)", "next (local)", "open", "overdue", "dead", "guarded", "note"),
]
_DROP = ["note", "next (local)", "guarded", "last slot", "dead", "open", "next (UTC)"]


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue status --redis redis://localhost:6379/0", "all jobs; no code is needed"),
        ("slotqueue status app:slots --watch 2", ""),
        ("slotqueue status app:slots --job nightly --json", ""),
    ],
)
@app_argument
@site_options
@click.option("--job", metavar="JOB", help="Only this job.")
@watch_option
@json_option
@click.pass_context
def status(
    ctx: click.Context,
    *,
    app: str | None,
    redis: str | None,
    namespace: str | None,
    job: str | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """Show how each job stands: its schedule, its newest slot, when it fires next, what is open, overdue and dead.

    "overdue" counts open slots that should be done by now (`done_within`). "dead" counts all that was given up, lost
    slots among them. The note tells pauses, and whether a slot is due that nobody has decided.

    Exit code 1 where the namespace is empty: no job is known, and no replica has registered.
    """
    site = site_from(app, redis, namespace)
    is_known = True

    def answer(found: Status) -> None:
        nonlocal is_known
        is_known = found.is_known
        (_print_json if as_json else _print)(found)

    watching(site, lambda site: status_of(site, job=job), answer, watch=watch, as_json=as_json)
    if not is_known:
        ctx.exit(FOUND_SOMETHING)


def _print_json(found: Status) -> None:
    facts = asdict(found)
    for row, each in zip(facts["jobs"], found.jobs, strict=True):
        row["next_local"] = each.next_local.isoformat(timespec="seconds") if each.next_local else None
    print_json(facts)


def _print(found: Status) -> None:
    if found.jobs:
        print_table(_COLUMNS, [_row(each) for each in found.jobs], drop=_DROP, fold="fires")
    else:
        click.echo("no job is known" if found.is_known else nothing_known(found.namespace))
    if found.jobs and found.replica_seen is not None:
        troubled = [each.job for each in found.jobs if each.undecided_since is not None]
        if troubled:
            click.echo(
                f"{count(len(troubled), 'job')} with slots that nobody has decided; "
                f"a replica was last seen at {instant(found.replica_seen)}",
                err=True,
            )
    if found.jobs and not found.is_replica_up:
        seen = f"; one was last seen at {instant(found.replica_seen)}" if found.replica_seen else ""
        click.echo(f"no replica is up{seen}", err=True)


def _row(row: JobStatus) -> list[str]:
    guarded = "?" if row.is_guarded is None else "yes" if row.is_guarded else "no"
    return [
        row.job,
        row.says,
        instant(row.last_fire) if row.last_fire else "",
        row.last_state.value if row.last_state else "",
        instant(row.next_fire) if row.next_fire else "",
        row.next_local.isoformat(timespec="seconds") if row.next_local else "",
        str(row.open or ""),
        str(row.overdue or ""),
        str(row.dead or ""),
        guarded,
        _note(row),
    ]


def _note(row: JobStatus) -> str:
    notes = []
    if not row.is_in_force:
        notes.append("removed")
    if not row.is_registered:
        notes.append("never registered")
    if row.is_paused:
        until = f" until {instant(row.paused_until)}" if row.paused_until else ""
        by = f" by {row.paused_by}" if row.paused_by else ""
        notes.append(f"paused{until}{by}{f': {row.paused_why}' if row.paused_why else ''}")
    if row.undecided_since:
        notes.append(f"undecided since {instant(row.undecided_since)}")
    return "; ".join(notes)
