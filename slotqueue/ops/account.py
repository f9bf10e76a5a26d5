"""The account of one slot: what happened to it, where it stands, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slotqueue.ops.absence import Absence, Question, Why, absence
from slotqueue.ops.site import Site, canonical
from slotqueue.ops.slots import moment
from slotqueue.ops.standing import standing
from slotqueue.ops.timeline import Moment, discarded, timeline
from slotqueue.ops.timetable import schedule_from
from slotqueue.policy import Terms
from slotqueue.slots import KeyParts, SlotState, from_ms, to_ms
from slotqueue.store.reading import Reader
from slotqueue.store.readings import Record, SlotKept
from slotqueue.store.registry import read_entry


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of a slot. `ended_at` is None while it runs, and where its end was not reported."""

    worker: str
    fence: int
    began_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Missed:
    """The gap in which a slot without a record lies: fire times in (after, until], aware UTC instants."""

    after: datetime
    until: datetime
    recorded_at: datetime
    replica: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All that is known of one slot.

    Args:
        key: the slot key.
        job: the job's name.
        fire_time: aware UTC instant.
        interval_start: where what the slot covers begins; None without a record.
        state: None without a sound record.
        is_discarded: an operator has taken it from the list of dead letters.
        says: where it stands or ended and why; without a record, why there is none.
        no_record: why there is no record, in a word for programs; None where there is one, or a damaged one.
        missed: the gap in which it lies, where that is why.
        timeline: what happened, oldest first.
        replica: who won the claim; None where there is none.
        task: with its worker system, "arq:send_digest".
        version: of the job that won.
        enqueues: how often it was given to the queue, or was about to be.
        attempts: attempts spent by crashes and final failures.
        behind: the key of the slot that is, or was when this one was skipped, in its way (`overlap`); "" for none.
        terms: the policy under which it was claimed.
        last_run: None where it never began.
        late: seconds from fire time to claim, 0 for one that was claimed ahead.
        queue_time: seconds from the newest enqueue to the newest begin.
        run_time: seconds from the newest begin to the end.
        deadline: when a sweep may take it over; None where it is not open.
        error: the last error, "" for none.
        damage: what is wrong with its keys in Redis, "" for nothing.
        lives: seconds that each of its keys has left: claim, done marker, record.
        asked_at: Redis's time.
    """

    key: str
    job: str
    fire_time: datetime
    says: str
    asked_at: datetime
    state: SlotState | None = None
    is_discarded: bool = False
    no_record: Why | None = None
    missed: Missed | None = None
    interval_start: datetime | None = None
    timeline: tuple[Moment, ...] = ()
    replica: str | None = None
    task: str = ""
    version: str = ""
    enqueues: int = 0
    attempts: int = 0
    behind: str = ""
    terms: Terms | None = None
    last_run: LastRun | None = None
    late: float | None = None
    queue_time: float | None = None
    run_time: float | None = None
    deadline: datetime | None = None
    error: str = ""
    damage: str = ""
    lives: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_on_record(self) -> bool:
        """Whether there is a sound record."""
        return self.state is not None


async def account(site: Site, key: str) -> Account:
    """Tell what happened to one slot; where there is no record, why.

    Args:
        site: where to look.
        key: the slot key; seconds of zero and a trailing Z are let pass.

    Raises:
        InvalidSlotKey: the text is no slot key.
        ConfigurationError: it is a key of another namespace.
        StoreUnavailable: ask again.
    """
    key, parts, reader = canonical(key), site.parts_of(key), site.reader
    (kept,) = await reader.slots([key])
    now = await reader.now()
    if kept.record is not None:
        seen = (await reader.tasks()).get(kept.record.task)
        return _recorded(parts, kept, kept.record, now, seen)
    why = None if kept.damage else await _absence(site, parts, kept, now)
    return Account(
        key=key,
        job=parts.job,
        fire_time=parts.fire_time,
        says=why.says if why is not None else f"Its keys in Redis are damaged: {kept.damage}.",
        no_record=why.why if why is not None else None,
        missed=_missed(why),
        asked_at=from_ms(now),
        replica=kept.owner,
        deadline=moment(kept.deadline),
        damage=kept.damage,
        lives=_lives(kept),
    )


async def _absence(site: Site, parts: KeyParts, kept: SlotKept, now: int) -> Absence:
    reader = site.reader
    facts = await reader.job(parts.job)
    names = await reader.job_names() if facts.known is None else []
    here = site.jobs
    seen = max((replica.seen for replica in await reader.replicas()), default=None)
    if here is not None and parts.job in here:
        job = here[parts.job]
        known: tuple[tuple[Any, ...], int | None, int | None] = (job.schedule,), job.terms.history, None
    else:
        known = await _registered(reader, parts)
    return absence(Question(parts, kept, facts, *known, here is not None, {*names, *(here or {})}, seen, now))


async def _registered(reader: Reader, parts: KeyParts) -> tuple[tuple[Any, ...], int | None, int | None]:
    """What the registry says of a job: the schedules in force at the slot's time, the history, since when it owes."""
    entry, texts = await read_entry(reader, parts.job)
    if entry is None:
        return (), None, None
    fire = to_ms(parts.fire_time)
    spans = [span for span in entry.spans if span.since < fire and (span.until is None or fire <= span.until)]
    spans = spans or [span for span in entry.spans if span.until is None]
    found = [schedule_from(texts.get(span.version, "")) for span in spans]
    history = entry.about.terms.history if entry.about else None
    return tuple(found) if all(found) else (), history, min((span.since for span in entry.spans), default=None)


def _missed(absent: Absence | None) -> Missed | None:
    gap = absent.gap if absent is not None else None
    if gap is None:
        return None
    return Missed(from_ms(gap.after), from_ms(gap.until), from_ms(gap.recorded), gap.replica, gap.why)


def _recorded(parts: KeyParts, kept: SlotKept, record: Record, now: int, task_seen: int | None) -> Account:
    numbers, is_over = record.numbers, not record.state.is_open
    has_run_to_end = record.state in (SlotState.DONE, SlotState.DEAD) and numbers.ended >= numbers.began > 0
    return Account(
        key=kept.key,
        job=parts.job,
        fire_time=parts.fire_time,
        says=standing(kept, record, now, task_seen)
        + (f" Some of its keys in Redis are damaged: {kept.damage}." if kept.damage else ""),
        asked_at=from_ms(now),
        state=record.state,
        is_discarded=discarded(record) is not None,
        interval_start=moment(numbers.start),
        timeline=timeline(kept, record),
        replica=record.by or kept.owner,
        task=record.task,
        version=record.version,
        enqueues=record.enqueues,
        attempts=numbers.spent,
        behind=record.behind,
        terms=record.terms,
        last_run=LastRun(
            record.worker,
            numbers.fence,
            from_ms(numbers.began),
            moment(numbers.ended) if is_over and has_run_to_end else None,
        )
        if numbers.began
        else None,
        late=max(0, numbers.claimed - numbers.fire) / 1000 if numbers.claimed else None,
        queue_time=_seconds(numbers.queued, numbers.began),
        run_time=_seconds(numbers.began, numbers.ended) if has_run_to_end else None,
        deadline=moment(kept.deadline),
        error=record.error,
        damage=kept.damage,
        lives=_lives(kept),
    )


def _lives(kept: SlotKept) -> dict[str, float]:
    lives = {"claim": kept.owner_ttl, "done marker": kept.done_ttl, "record": kept.record_ttl}
    return {name: ms / 1000 for name, ms in lives.items() if ms is not None}


def _seconds(start: int, end: int) -> float | None:
    return (end - start) / 1000 if start and end >= start else None
