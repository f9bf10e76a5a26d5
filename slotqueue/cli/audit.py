"""`slotqueue audit`: what should have run against what is on record."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import click

from slotqueue.cli.failing import FOUND_SOMETHING, printable
from slotqueue.cli.instants import Ago
from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.ops.audit import EXAMPLES, Audited, JobAudited, Outcome
from slotqueue.ops.audit import audit as audit_of
from slotqueue.words import count, instant, nothing_known

_ALWAYS = (Outcome.DONE, Outcome.MISSED, Outcome.UNDECIDED)


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue audit --redis redis://localhost:6379/0 --since 24h", "from any machine; no code is needed"),
        ("slotqueue audit app:slots --since 7d --job nightly", ""),
        ("slotqueue audit app:slots --since 2026-10-02T00:00Z --until 2026-10-03T00:00Z --json", ""),
    ],
)
@app_argument
@site_options
@click.option(
    "--since",
    type=Ago(),
    metavar="INSTANT",
    required=True,
    help="From here on: 24h, 2026-10-25T00:30; UTC without a zone.",
)
@click.option("--until", type=Ago(), metavar="INSTANT", help="Up to here; UTC without a zone.  [default: now]")
@click.option("--job", metavar="JOB", help="Only this job.")
@click.option("--bad", is_flag=True, help="Only jobs with slots that should have run and did not.")
@json_option
@click.pass_context
def audit(  # noqa: PLR0913 - an option each
    ctx: click.Context,
    *,
    app: str | None,
    redis: str | None,
    namespace: str | None,
    since: datetime,
    until: datetime | None,
    job: str | None,
    bad: bool,
    as_json: bool,
) -> None:
    """Hold what should have run against what is on record, job by job: done, late, missed, lost, dead, never decided.

    What should have run is told by the schedules that were in force at the time. No replica needs to be up: slots that
    nobody decided are found by this. A range from which records may have expired is refused.

    Exit code 1 where something that should have run did not: overdue, expired, missed, lost, dead, never decided, or
    its record is gone; and where nothing can be told: no replica has ever registered in the namespace, or none a job of
    the application. Skips on purpose (paused, overlapped, coalesced) are no fault.
    """
    found = ask(site_from(app, redis, namespace), lambda site: audit_of(site, since=since, until=until, job=job))
    shown = [each for each in found.jobs if not (bad and each.is_sound)]
    if as_json:
        print_json(_facts(found, shown))
    else:
        _print(found, shown)
    if not found.is_sound:
        ctx.exit(FOUND_SOMETHING)


def _facts(found: Audited, shown: list[JobAudited]) -> dict[str, object]:
    return {
        "since": found.since,
        "until": found.until,
        "is_sound": found.is_sound,
        "is_known": found.is_known,
        "never_registered": found.never_registered,
        "totals": _row_facts(found.totals),
        "jobs": [_row_facts(each) for each in shown],
    }


def _row_facts(row: JobAudited) -> dict[str, object]:
    facts = asdict(row)
    facts["outcomes"] = {outcome.value: row.outcomes.get(outcome, 0) for outcome in Outcome}
    facts["examples"] = {outcome.value: list(keys) for outcome, keys in row.examples.items()}
    return facts | {"is_sound": row.is_sound}


def _print(found: Audited, shown: list[JobAudited]) -> None:
    if found.never_registered:
        names = ", ".join(map(printable, found.never_registered))
        click.echo(f"never registered: {names}: no replica has made them known in the namespace {found.namespace!r}")
    if not found.is_known:
        if not found.never_registered:
            click.echo(nothing_known(found.namespace))
        return
    totals = found.totals
    click.echo(f"{count(totals.slots, 'slot')} due after {instant(found.since)} up to {instant(found.until)}")
    used = [outcome for outcome in Outcome if outcome in _ALWAYS or totals.outcomes.get(outcome)]
    if shown:
        click.echo()
        columns = ["job", "slots", *(outcome.value for outcome in used), "repeated"]
        rows = [_row(each, each.job, used) for each in shown]
        print_table(columns, [*rows, _row(totals, "in all", used)], drop=["repeated"])
    for each in shown:
        for outcome, keys in each.examples.items():
            click.echo(f"{outcome.value}: {_listed(keys, each.outcomes[outcome])}")
    if totals.by_hand:
        click.echo(f"besides, {count(totals.by_hand, 'slot')} that an operator made")
    unknown = [each.job for each in found.jobs if not each.is_computed]
    if unknown:
        click.echo(
            f"{count(len(unknown), 'job')} with a schedule that only the application can compute ({unknown[0]!r}, for "
            "example): of these only slots on record are counted; name it as MODULE:ATTRIBUTE",
            err=True,
        )


def _row(row: JobAudited, name: str, used: list[Outcome]) -> list[str]:
    return [name, str(row.slots), *(str(row.outcomes.get(each) or "") for each in used), str(row.repeated or "")]


def _listed(keys: object, number: int) -> str:
    named = [printable(str(key)) for key in keys] if isinstance(keys, list | tuple) else []
    more = f" and {number - EXAMPLES} more" if number > EXAMPLES else ""
    return f"{', '.join(named)}{more}"
