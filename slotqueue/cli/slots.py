"""`slotqueue slots` and `slotqueue show`: the newest slots, and the account of one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime

import click

from slotqueue.cli.failing import FOUND_SOMETHING, Wrong, printable
from slotqueue.cli.instants import Ago
from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.tables import print_facts, print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.watching import watch_option, watching
from slotqueue.cli.where import ask, site_from
from slotqueue.errors import InvalidSlotKey
from slotqueue.ops.account import Account, account
from slotqueue.ops.site import canonical
from slotqueue.ops.slots import MOST_ROWS, Recent, SlotRow, recent
from slotqueue.policy import Terms
from slotqueue.slots import EPOCH, SlotState, check_name, is_slot_key, key_at, parse_key
from slotqueue.words import duration, instant

_COLUMNS = ["slot", "state", "late", "claimed by", "enqueues", "worker", "ended", "note"]
_DROP = ["enqueues", "claimed by", "worker", "late", "ended", "note"]
_LONGEST_NOTE = 120
_ON_FAILURE = {"a": "again", "d": "dead"}
_OVERLAP = {"a": "allow", "f": "forbid", "h": "hold"}


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue slots app:slots --job nightly", ""),
        ("slotqueue slots --redis redis://localhost:6379/0 --state dead --state lost", "what was given up"),
        ("slotqueue slots app:slots --since 2h --watch 2", ""),
    ],
)
@app_argument
@site_options
@click.option("--job", metavar="JOB", help="Only slots of this job.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in SlotState]),
    help="Only slots in this state; may be given more than once.",
)
@click.option(
    "--since",
    type=Ago(),
    metavar="INSTANT",
    help="Only fire times from here on: 24h, 2026-10-25T00:30; UTC without a zone.",
)
@click.option("--until", type=Ago(), metavar="INSTANT", help="Only fire times up to here; UTC without a zone.")
@click.option("--limit", type=click.IntRange(1, MOST_ROWS), default=20, show_default=True, help="How many at most.")
@watch_option
@json_option
def slots(  # noqa: PLR0913 - an option each
    *,
    app: str | None,
    redis: str | None,
    namespace: str | None,
    job: str | None,
    states: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    limit: int,
    watch: float | None,
    as_json: bool,
) -> None:
    """List the newest slots on record, by fire time, and where they stand."""
    wanted = [SlotState(state) for state in states]
    has_filter = bool(job or states or since or until)

    def answer(found: Recent) -> None:
        if as_json:
            print_json([asdict(row) for row in found.rows])
        elif found.rows:
            print_table(_COLUMNS, [_row(row) for row in found.rows], drop=_DROP, fold="note")
        else:
            click.echo("no such slot is on record" if has_filter else "no slot is on record")
        if not found.is_complete and len(found.rows) < limit:
            click.echo("(only the newest slots were looked at; --job finds more)", err=True)

    watching(
        site_from(app, redis, namespace),
        lambda site: recent(site, job=job, state=wanted, since=since, until=until, limit=limit),
        answer,
        watch=watch,
        as_json=as_json,
    )


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue show ran:nightly:2026-10-02T03:00 --redis redis://localhost:6379/0", ""),
        ("slotqueue show app:slots ran:nightly:2026-10-02T03:00 --json", "with the schedule at hand"),
        ("slotqueue show app:slots nightly 2026-10-02T05:00+02:00", "by job and instant; UTC where it has no zone"),
    ],
)
@click.argument("words", nargs=-1, required=True, metavar="[MODULE:ATTRIBUTE] KEY|JOB INSTANT")
@site_options
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    words: tuple[str, ...],
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Tell what happened to one slot: who claimed it, when and how late, its runs, where it stands or ended, and why.

    Where there is no record it says why: not due yet, missed, expired, no slot of the schedule. Redis knows Cron and
    Every schedules; of any other kind only the application can tell whether it fires at an instant at all.

    Exit code 1 where the slot's keys in Redis are damaged.
    """
    app, key, job, at = _split(words)
    site = site_from(app, redis, namespace, own_namespace=parse_key(key).namespace if key else None)
    wanted = key or key_at(site.namespace, job, at)
    found = ask(site, lambda site: account(site, wanted))
    if as_json:
        print_json(_facts(found))
    else:
        _print(found)
    if found.damage:
        ctx.exit(FOUND_SOMETHING)


def _split(words: tuple[str, ...]) -> tuple[str | None, str, str, datetime]:
    """Tell application, key, and job and instant where they stand for a key."""
    *before, last = words
    key, job, at = canonical(last), "", EPOCH
    with suppress(InvalidSlotKey, ValueError, OverflowError):
        if before and not is_slot_key(key):
            at = datetime.fromisoformat(last)
            at = (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)).replace(microsecond=0)
            key, job = "", before.pop()
            check_name(job)
    if len(before) > 1:
        raise Wrong("name one application and one key at most; a key with blanks needs quotes, and so has a job's name")
    return before[0] if before else None, key, job, at


def _row(row: SlotRow) -> list[str]:
    note = row.note if len(row.note) <= _LONGEST_NOTE else f"{row.note[:_LONGEST_NOTE]}..."
    missed = f"{row.job}: after {instant(row.missed_after)}" if row.missed_after else ""
    until = f" up to {instant(row.missed_until)}" if row.missed_until else ""
    return [
        row.key or missed + until,
        row.state.value if row.state else "damaged",
        "" if row.late is None else duration(row.late * 1000),
        row.replica,
        str(row.enqueues) if row.enqueues else "",
        row.worker,
        instant(row.ended_at) if row.ended_at else "",
        note,
    ]


def _print(found: Account) -> None:
    state = found.state.value if found.state else "damaged" if found.damage else "not on record"
    click.echo(f"{printable(found.key)}: {state}{', discarded' if found.is_discarded else ''}")
    click.echo(printable(found.says))
    if found.timeline:
        click.echo()
        print_facts([(instant(moment.at), moment.what) for moment in found.timeline])
    facts = _details(found)
    if any(value for _, value in facts):
        click.echo()
        print_facts(facts)


def _details(found: Account) -> list[tuple[str, str]]:
    terms = found.terms
    lives = ", ".join(f"{name} {duration(seconds * 1000)}" for name, seconds in found.lives.items())
    return [
        ("covers", _interval(found)),
        ("task", found.task),
        ("version", found.version),
        ("replica", found.replica or ""),
        ("late", _seconds(found.late)),
        ("queue time", _seconds(found.queue_time)),
        ("run time", _seconds(found.run_time)),
        ("enqueues", str(found.enqueues) if found.enqueues else ""),
        ("attempts", f"{found.attempts} of {terms.max_attempts} spent" if terms else ""),
        ("on crash", ("complete" if terms.is_complete else "skip") if terms else ""),
        ("on failure", ("again" if terms.on_failure == "a" else "dead") if terms else ""),
        ("overlap", _overlap(terms) if terms and not terms.may_overlap else ""),
        ("in the way", found.behind),
        ("lease", duration(terms.lease) if terms else ""),
        ("deadline", instant(found.deadline) if found.deadline else ""),
        ("error", found.error),
        ("kept for", lives),
    ]


def _overlap(terms: Terms) -> str:
    word = _OVERLAP.get(terms.overlap[:1], terms.overlap)
    return word if terms.max_held is None else f"{word}, {terms.max_held} at most"


def _interval(found: Account) -> str:
    if found.interval_start is None:
        return ""
    return f"{instant(found.interval_start)} up to {instant(found.fire_time)}"


def _seconds(value: float | None) -> str:
    return "" if value is None else duration(value * 1000)


def _facts(found: Account) -> dict[str, object]:
    """The account for programs: the policy and each moment by name."""
    facts = asdict(found)
    facts["timeline"] = [moment._asdict() for moment in found.timeline]
    facts["terms"] = _terms(found.terms) if found.terms else None
    return facts


def _terms(terms: Terms) -> dict[str, object]:
    """The policy in words and seconds; None for "none" and "never"."""

    def seconds(ms: int) -> float | None:
        return ms / 1000 if ms else None

    return {
        "on_crash": "complete" if terms.is_complete else "skip",
        "on_failure": _ON_FAILURE.get(terms.on_failure, terms.on_failure),
        "overlap": _OVERLAP.get(terms.overlap[:1], terms.overlap),
        "max_held": terms.max_held,
        "lease": seconds(terms.lease),
        "requeue_after": seconds(terms.requeue),
        "max_attempts": terms.max_attempts,
        "retention": seconds(terms.retention),
        "history": seconds(terms.history),
        "expires": seconds(terms.expires),
        "done_within": seconds(terms.done_within),
        "longest_wait": seconds(terms.longest_wait),
    }
