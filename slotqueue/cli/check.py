"""`slotqueue check`: what would go wrong, before it does."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from slotqueue.cli.failing import FOUND_SOMETHING
from slotqueue.cli.loading import Misconfigured, load_app
from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.ops.checking import Checked, JobChecked, check_jobs
from slotqueue.ops.checking import check as check_site
from slotqueue.ops.findings import Finding, Severity
from slotqueue.words import count, instant

_DROP = ["task", "guarded", "schedule"]


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue check app:slots --offline", "in CI, without a Redis"),
        ("slotqueue check app:slots", "before a deployment"),
    ],
)
@app_argument
@site_options
@click.option("--offline", is_flag=True, help="Do not ask Redis.")
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    app: str | None,
    redis: str | None,
    namespace: str | None,
    offline: bool,  # noqa: FBT001 - click's call
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Find what would go wrong: imports, schedules, arguments, tasks that no worker has, the settings of Redis.

    Starts nothing, and changes nothing in Redis. Without an application (--redis URL) it looks at Redis alone.

    Exit code 1 where it found a problem; warnings alone are no problem. 3 where Redis is unavailable.
    """
    try:
        checked = _offline(app) if offline else ask(site_from(app, redis, namespace), check_site)
    except Misconfigured as error:
        checked = Checked((), (Finding(Severity.PROBLEM, "application", error.message),), asked_redis=False)
    if as_json:
        print_json({"is_sound": checked.is_sound, **asdict(checked)})
    else:
        _print(checked)
    if not checked.is_sound:
        ctx.exit(FOUND_SOMETHING)


def _offline(app: str | None) -> Checked:
    return check_jobs(load_app(app))


def _print(checked: Checked) -> None:
    if checked.jobs:
        columns = ["job", "schedule", "task", "guarded", "fires next (UTC)"]
        print_table(columns, [_row(job) for job in checked.jobs], drop=_DROP, fold=columns[-1])
        click.echo()
    if checked.findings:
        rows = [[each.severity.value, each.about, each.text] for each in checked.findings]
        print_table(["", "about", "what"], rows, fold="what")
        click.echo()
    tally = Counter(finding.severity for finding in checked.findings)
    asked = "" if checked.asked_redis else " (Redis was not asked)"
    click.echo(", ".join(count(tally[severity], severity.value) for severity in Severity) + asked)


def _row(job: JobChecked) -> list[str]:
    guarded = "?" if job.is_guarded is None else "yes" if job.is_guarded else "no"
    fires = ", ".join(instant(each) for each in job.next_fires)
    return [job.name, job.schedule, job.task, guarded, fires or "never"]
