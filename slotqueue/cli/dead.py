"""`slotqueue dead` and `forget`: what was given up, and jobs that are gone."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from slotqueue.cli.failing import FOUND_SOMETHING, Wrong, printable
from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.orders import order_facts
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.cli.words import one, split_app
from slotqueue.ops.forgetting import forget as forget_job
from slotqueue.ops.letters import discard_letters, letters, retry_letters
from slotqueue.ops.site import Site
from slotqueue.ops.slots import MOST_ROWS, SlotRow
from slotqueue.words import count, instant


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue dead --redis redis://localhost:6379/0", "what was given up or lost?"),
        ("slotqueue dead --redis redis://localhost:6379/0 --job nightly --retry-all --yes", ""),
    ],
)
@app_argument
@site_options
@click.option("--job", metavar="JOB", help="Only those of this job.")
@click.option("--limit", type=click.IntRange(1, MOST_ROWS), default=20, show_default=True, help="List so many at most.")
@click.option("--retry-all", is_flag=True, help="Bring all of them back (with --job: of it), the oldest first.")
@click.option("--discard", is_flag=True, help="Take all of them (with --job: of it) from the list.")
@click.option("--yes", is_flag=True, help="Yes, --retry-all or --discard shall do so.")
@json_option
@click.pass_context
def dead(  # noqa: PLR0913, PLR0917 - click's call
    ctx: click.Context,
    app: str | None,
    redis: str | None,
    namespace: str | None,
    job: str | None,
    limit: int,
    retry_all: bool,  # noqa: FBT001 - click's call
    discard: bool,  # noqa: FBT001 - click's call
    yes: bool,  # noqa: FBT001 - click's call
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """List dead letters, the newest first: slots that were given up, and those that `on_crash="skip"` left lost.

    --retry-all brings them back as `slotqueue retry` does, --discard takes them from the list; --limit bounds neither.
    Without --yes both only list what they would do it to, and exit with 2.

    Exit code 1 where --retry-all left one alone, because its job is paused for example.
    """
    if retry_all and discard:
        raise Wrong("say --retry-all or --discard, not both")
    site = site_from(app, redis, namespace)
    if (retry_all or discard) and not yes:
        _list(*ask(site, lambda site: letters(site, job=job, limit=limit)), as_json=as_json)
        what = "bring all of them back" if retry_all else "take all of them from the list"
        raise Wrong(f"nothing was changed: say --yes to {what}")
    if retry_all:
        _retry(ctx, site, job, as_json=as_json)
    elif discard:
        gone = ask(site, lambda site: discard_letters(site, job=job))
        if as_json:
            print_json(gone)
        else:
            click.echo(f"{count(len(gone), 'dead letter')} discarded")
    else:
        rows, total = ask(site, lambda site: letters(site, job=job, limit=limit))
        _list(rows, total, as_json=as_json)


@click.command(cls=Taught, examples=[("slotqueue forget old_report --redis redis://localhost:6379/0", "")])
@click.argument("words", nargs=-1, required=True, metavar="[MODULE:ATTRIBUTE] JOB")
@site_options
@json_option
def forget(words: tuple[str, ...], redis: str | None, namespace: str | None, as_json: bool) -> None:  # noqa: FBT001
    """Forget a job that was removed from the code: it leaves the registries, with its gaps and its pause.

    Its open slots end as missed, but for those that a worker may be running. Records stay until their time is over.
    Refused while a replica knows the job. A job that comes back owes nothing from before.
    """
    app, rest = split_app(words, redis)
    job = one(rest, "job")
    found = ask(site_from(app, redis, namespace), lambda site: forget_job(site, job))
    if as_json:
        print_json(asdict(found))
        return
    click.echo(printable(f"{job} is forgotten; {count(len(found.missed), 'open slot')} ended as missed"))
    for key in found.left:
        click.echo(printable(f"{key} may be running: it ends by itself"))


def _retry(ctx: click.Context, site: Site, job: str | None, *, as_json: bool) -> None:
    orders = ask(site, lambda site: retry_letters(site, job=job))
    left = [order for order in orders if not order.is_taken]
    if as_json:
        print_json([order_facts(order) for order in orders])
    else:
        for order in left:
            click.echo(printable(order.says))
        tally = Counter(order.outcome.value for order in orders)
        words = ", ".join(f"{word} {number}" for word, number in tally.items())
        click.echo(f"{count(len(orders), 'dead letter')}{f': {words}' if words else ''}")
    if left:
        ctx.exit(FOUND_SOMETHING)


def _list(rows: tuple[SlotRow, ...], total: int, *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    if rows:
        columns = ["slot", "state", "ended", "attempts", "worker", "note"]
        print_table(columns, [_row(row) for row in rows], drop=["worker", "attempts", "ended", "note"], fold="note")
        click.echo()
    shown = f", the newest {len(rows)} shown" if len(rows) < total else ""
    click.echo(f"{count(total, 'dead letter')}{shown}")


def _row(row: SlotRow) -> list[str]:
    state = row.state.value if row.state else "damaged"
    return [row.key, state, instant(row.ended_at) if row.ended_at else "", str(row.attempts), row.worker, row.note]
