"""Why there is no record of a slot, in words. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from slotqueue.jobs import Job
from slotqueue.ops.words import did_you_mean, instant, within
from slotqueue.slots import KeyParts, to_ms
from slotqueue.store.reading import JobFacts
from slotqueue.store.readings import SlotKept

_SILENT_MS = 15 * 60_000
"""A replica registers every five minutes."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is known about a slot without a record.

    Args:
        parts: of its key.
        kept: what else Redis keeps of it.
        facts: what the namespace says of its job.
        job: the application's job, None where there is none or no application is known.
        is_app_known: whether an application is known at all.
        names: all jobs that are known, for a hint.
        now: Redis's time, ms.
    """

    parts: KeyParts
    kept: SlotKept
    facts: JobFacts
    job: Job | None
    is_app_known: bool
    names: Collection[str]
    now: int

    @property
    def fire(self) -> int:
        """The fire time in ms."""
        return to_ms(self.parts.fire_time)


def absence(asked: Question) -> str:
    """Say why there is no record; the most telling reason first."""
    reasons = (_what_is_left, _unknown_job, _operators_own, _no_fire_time, _not_due, _missed)
    return next((said for reason in reasons if (said := reason(asked))), "") or _undecided_or_expired(asked)


def _what_is_left(asked: Question) -> str | None:
    kept = asked.kept
    if kept.done_by is not None:
        return f"It is done, finished by {kept.done_by}; its record has expired, the done marker is still there."
    if kept.owner is not None:
        return f"It was claimed by {kept.owner}; its record is gone: expired, evicted or deleted."
    return None


def _unknown_job(asked: Question) -> str | None:
    name = asked.parts.job
    if asked.facts.known is not None or asked.job is not None:
        return None
    hint = did_you_mean(name, asked.names) or "no job is known there"
    known = f"No replica has made a job {name!r} known in the namespace {asked.parts.namespace!r}; {hint}"
    return known if known.endswith("?") else f"{known}."


def _operators_own(asked: Question) -> str | None:
    if not asked.parts.mark:
        return None
    return "It is none of the schedule's slots: an operator made it, and its record has expired, or it never was."


def _not_due(asked: Question) -> str | None:
    if asked.fire <= asked.now:
        return None
    return (
        f"It is not due yet: its fire time comes {within(asked.fire, asked.now)}.{_paused(asked)}{_unless_never(asked)}"
    )


def _missed(asked: Question) -> str | None:
    gap = next((gap for gap in asked.facts.gaps if gap.after < asked.fire <= gap.until), None)
    if gap is None:
        return None
    return (
        f"It was missed: nobody decided the slots after {instant(gap.after)} up to {instant(gap.until)} ({gap.why}). "
        f"Recorded at {instant(gap.recorded)} by {gap.replica}.{_unless_never(asked)}"
    )


def _undecided_or_expired(asked: Question) -> str:
    fire, facts, now = asked.fire, asked.facts, asked.now
    if facts.known is not None and fire <= facts.known.since:
        return (
            f"Nothing is on record. The schedule is known since {instant(facts.known.since)}, and owes nothing from "
            f"before; a slot that an earlier schedule decided would have expired by now.{_unless_never(asked)}"
        )
    if fire <= facts.decided:
        return (
            f"Its record has expired: everything up to {instant(facts.decided)} is decided, this slot too."
            f"{_unless_never(asked)}"
        )
    since = f"It is due since {instant(fire)} ({within(fire, now)}), and nobody has decided it."
    return f"{since}{_why_nobody(asked)}{_paused(asked)}{_unless_never(asked)}"


def _paused(asked: Question) -> str:
    until = asked.facts.paused_until
    if until is None or 0 < until <= asked.now:
        return ""
    return f" The job is paused{f' until {instant(until)}' if until else ''}: slots that fall due are skipped."


def _why_nobody(asked: Question) -> str:
    facts, now = asked.facts, asked.now
    seen = facts.known.seen if facts.known is not None else 0
    if not facts.fleet_seen or now - facts.fleet_seen > _SILENT_MS:
        last = f"; one was last seen at {instant(facts.fleet_seen)}" if facts.fleet_seen else ""
        return f" No replica is up{last}."
    if now - seen > _SILENT_MS:
        last = f" since {instant(seen)}" if seen else ""
        return f" Replicas are up, and none of them knows the job{last}."
    return " Replicas that know the job are up: the next pass decides it."


def _no_fire_time(asked: Question) -> str | None:
    if asked.job is None:
        return None
    at = asked.parts.fire_time
    try:
        if any(True for _ in asked.job.schedule.between(at, at + timedelta(seconds=1))):
            return None
        near = asked.job.schedule.latest_at(at), asked.job.schedule.next_after(at)
    except Exception as error:  # noqa: BLE001 - a schedule may be anybody's code
        return f"The schedule of {asked.parts.job!r} fails: {type(error).__name__}: {error}"
    shown = " and ".join(instant(each) for each in near if each is not None)
    return (
        f"It is not a slot of this schedule ({asked.job.schedule}): it does not fire at {instant(at)}. "
        f"The fire times next to it are {shown or 'none'}."
    )


def _unless_never(asked: Question) -> str:
    """Without the schedule nobody can tell a slot from any other instant."""
    if asked.job is not None:
        return ""
    if asked.is_app_known:
        return " The application does not know the job (any more), so whether it fires then is not known."
    return " Whether the job fires then at all, only its application knows: name it as MODULE:ATTRIBUTE."
