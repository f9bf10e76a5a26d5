"""Why there is no record of a slot, in words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from slotqueue.ops.silence import JOB_UNSAID_MS, is_silent
from slotqueue.policy import LONGEST_HISTORY
from slotqueue.slots import KeyParts, to_ms
from slotqueue.store.reading import JobFacts
from slotqueue.store.readings import Gap, SlotKept
from slotqueue.words import did_you_mean, duration, instant, schedule_words, within

_MS = timedelta(milliseconds=1)
_AFTER_DOWNTIME = ("older than the lookback", "coalesced into a newer slot")
"""The planner's reasons: it came to these slots too late."""


class Why(StrEnum):
    """Why there is no record, for programs."""

    DONE_MARKER = "done_marker"
    """It is done: the marker is there and the record is gone."""
    CLAIM = "claim"
    """It was claimed, and the record is gone."""
    UNKNOWN_JOB = "unknown_job"
    """Nobody has made its job known."""
    NOT_A_SLOT = "not_a_slot"
    """The schedule does not fire then, or an operator made it."""
    NOT_DUE = "not_due"
    """Its fire time comes yet."""
    MISSED = "missed"
    """Nobody decided it in time: it lies in a recorded gap."""
    EXPIRED = "expired"
    """It is older than records are kept."""
    UNDECIDED = "undecided"
    """It is due, and nobody has decided it yet."""
    NO_RECORD = "no_record"
    """Not a slot of the schedule, not owed, or lost with Redis's data: nobody can tell."""


class Absence(NamedTuple):
    """Why there is no record: for programs, and in words. `gap` where it was missed."""

    why: Why
    says: str
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is known about a slot without a record.

    Args:
        parts: of its key.
        kept: what else Redis keeps of it.
        facts: what the namespace says of its job.
        schedules: those that were in force at its fire time; none where they are not known, or only its application
            can compute them.
        history: for how long its job keeps records, ms; None where that is not known.
        since: from when on its job owes slots, by the registry, ms; None where only the newest version tells.
        is_app_known: whether an application is known at all.
        names: all jobs that are known, for a hint.
        replica_seen: when the replica that was seen last registered, ms; None where none is in the registry.
        now: Redis's time, ms.
    """

    parts: KeyParts
    kept: SlotKept
    facts: JobFacts
    schedules: Sequence[Any]
    history: int | None
    since: int | None
    is_app_known: bool
    names: Collection[str]
    replica_seen: int | None
    now: int

    @property
    def fire(self) -> int:
        """The fire time in ms."""
        return to_ms(self.parts.fire_time)


def absence(asked: Question) -> Absence:
    """Say why there is no record; the most telling reason first."""
    reasons = (_what_is_left, _unknown_job, _operators_own, _no_fire_time, _not_due, _missed, _from_before, _decided)
    return next((said for reason in reasons if (said := reason(asked))), None) or _undecided(asked)


def _what_is_left(asked: Question) -> Absence | None:
    kept = asked.kept
    gone = "its record is gone: expired, evicted or deleted"
    if kept.done_by is not None:
        said = f"It was done, finished by {kept.done_by}; {gone}. The done marker is still there."
        return Absence(Why.DONE_MARKER, said)
    return Absence(Why.CLAIM, f"It was claimed by {kept.owner}; {gone}.") if kept.owner is not None else None


def _unknown_job(asked: Question) -> Absence | None:
    name = asked.parts.job
    if asked.facts.known is not None or asked.schedules:
        return None
    hint = did_you_mean(name, asked.names) or "no job is known there"
    known = f"No replica has made a job {name!r} known in the namespace {asked.parts.namespace!r}; {hint}"
    return Absence(Why.UNKNOWN_JOB, known if known.endswith("?") else f"{known}.")


def _operators_own(asked: Question) -> Absence | None:
    if not asked.parts.mark:
        return None
    said = "It is none of the schedule's slots: an operator made it, and its record is gone, or it never was."
    return Absence(Why.NOT_A_SLOT, said)


def _not_due(asked: Question) -> Absence | None:
    if asked.fire <= asked.now:
        return None
    said = f"It is not due yet: its fire time comes {within(asked.fire, asked.now)}."
    return Absence(Why.NOT_DUE, f"{said}{_paused(asked)}{_unless_never(asked)}")


def _missed(asked: Question) -> Absence | None:
    gap = next((gap for gap in asked.facts.gaps if gap.after < asked.fire <= gap.until), None)
    if gap is None:
        return None
    away = (
        f"no replica with its job was up and in touch with Redis between {instant(asked.fire)} and "
        f"{instant(gap.recorded)}, and"
    )
    said = (
        f"It was missed: {away if gap.why in _AFTER_DOWNTIME else ''} nobody decided the slots after "
        f"{instant(gap.after)} up to {instant(gap.until)} ({gap.why}). "
        f"Recorded at {instant(gap.recorded)} by {gap.replica}.{_unless_never(asked)}"
    ).replace("  ", " ")
    return Absence(Why.MISSED, said, gap)


def _from_before(asked: Question) -> Absence | None:
    known = asked.facts.known
    if known is None:
        return None
    since = known.since if asked.since is None else min(known.since, asked.since)
    if asked.fire > since:
        return None
    said = (
        f"There is no record. Redis has known the schedule since {instant(since)}, and nothing is owed from "
        f"before; if the job ran before then, Redis may have lost its data.{_unless_never(asked)}"
    )
    return Absence(Why.NO_RECORD, said)


def _decided(asked: Question) -> Absence | None:
    """All up to there is decided: it had a record, if it is a slot."""
    decided, age = asked.facts.decided, asked.now - asked.fire
    if asked.fire > decided:
        return None
    history = asked.history if asked.history is not None else LONGEST_HISTORY // _MS
    if age > history:
        said = f"Its record has expired: it is kept for {duration(history)} after the end, and it was due "
        return Absence(Why.EXPIRED, f"{said}{within(asked.fire, asked.now)}.{_unless_never(asked)}")
    said = f"There is no record, although everything up to {instant(decided)} is decided: "
    if not asked.schedules:
        said += "it is not a slot of the schedule, or its record has expired or is lost."
    else:
        said += "Redis may have lost its data, or the schedule was another one."
    return Absence(Why.NO_RECORD, f"{said}{_unless_never(asked)}")


def _undecided(asked: Question) -> Absence:
    said = f"It has been due since {instant(asked.fire)} ({within(asked.fire, asked.now)}), and nobody has decided it."
    return Absence(Why.UNDECIDED, f"{said}{_why_nobody(asked)}{_paused(asked)}{_unless_never(asked)}")


def _paused(asked: Question) -> str:
    until = asked.facts.paused_until
    if until is None or 0 < until <= asked.now:
        return ""
    return f" The job is paused{f' until {instant(until)}' if until else ''}: slots that fall due are skipped."


def _why_nobody(asked: Question) -> str:
    facts, now, seen = asked.facts, asked.now, asked.replica_seen
    if seen is None:
        last = f"; one last registered {within(facts.fleet_seen, now)}" if facts.fleet_seen else ""
        return f" No replica is in the registry: none has come, or all have left{last}."
    if is_silent(seen, now):
        return f" No replica was seen lately: the last one {within(seen, now)}, and they give a sign every 10 s."
    known = facts.known.seen if facts.known is not None else 0
    if now - known > JOB_UNSAID_MS:
        last = f" since {instant(known)}" if known else ""
        return f" A replica was last seen {within(seen, now)}, and none has known the job{last}."
    return (
        f" A replica was last seen {within(seen, now)}, and one that knows the job {within(known, now)} (they say so "
        "every 5 min): its next pass decides the slot."
    )


def _no_fire_time(asked: Question) -> Absence | None:
    if not asked.schedules:
        return None
    at = asked.parts.fire_time
    try:
        if any(True for each in asked.schedules for _ in each.between(at, at + timedelta(seconds=1))):
            return None
        near = asked.schedules[-1].latest_at(at), asked.schedules[-1].next_after(at)
    except Exception as error:  # noqa: BLE001 - a schedule may be anybody's code
        said = f"The schedule of {asked.parts.job!r} fails: {type(error).__name__}: {error}"
        return Absence(Why.NO_RECORD, said)
    shown = " and ".join(instant(each) for each in near if each is not None)
    schedule = schedule_words(asked.schedules[-1])
    said = (
        f"It is not a slot of this schedule ({schedule}): it does not fire at {instant(at)}. "
        f"The fire times next to it are {shown or 'none'}."
    )
    return Absence(Why.NOT_A_SLOT, said)


def _unless_never(asked: Question) -> str:
    """Without the schedule nobody can tell a slot from any other instant."""
    if asked.schedules:
        return ""
    if asked.is_app_known:
        return " The application does not know the job (any more), so whether it fires then is not known."
    return " Whether the job fires then at all, only its application knows: name it as MODULE:ATTRIBUTE."
