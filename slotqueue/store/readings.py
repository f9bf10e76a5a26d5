"""What is kept in Redis, as values: read from raw replies without ever raising, damage included. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from slotqueue.policy import Terms
from slotqueue.slots import SlotState

_LATEST = 250_000_000_000_000
"""ms: far in the future, and still a date."""


class PastEvent(NamedTuple):
    """What happened to a slot and was overwritten since: ms of Redis's time, and words.

    `began` is when the run began that ended by it, ms; 0 where no run did.
    """

    at: int
    text: str
    began: int = 0


class Numbers(NamedTuple):
    """The numbers of a record. Instants are ms of Redis's time, 0 for "not yet".

    Args:
        n: enqueue number.
        fence: of the newest run.
        spent: attempts spent.
        spared: how many of its numbers were never to reach the queue: that of a held slot, for example.
    """

    n: int
    fence: int
    spent: int
    fire: int
    start: int
    claimed: int
    queued: int
    began: int
    waits: int
    ended: int
    spared: int


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a slot.

    Args:
        state: where it stands.
        by: the replica that won it, or the worker that made a lost record anew.
        numbers: times and counts.
        past: what was overwritten, oldest first; the newest 20.
        events: how many such there were.
        why: why it ended; "" where that needs no word.
        error: the last error.
        is_unsent: the queue refused the message for certain.
        behind: the key of the slot that is or was in its way: `overlap`; "" for none.
    """

    state: SlotState
    by: str
    task: str
    version: str
    worker: str
    terms: Terms
    numbers: Numbers
    events: int
    past: tuple[PastEvent, ...]
    why: str
    error: str
    is_unsent: bool
    behind: str

    @property
    def enqueues(self) -> int:
        """How often it was given to the queue, or was about to be."""
        return max(0, self.numbers.n + 1 - self.numbers.spared)


@dataclass(frozen=True, slots=True)
class SlotKept:
    """All that Redis keeps of one slot; times to live in ms, None where there is no such key.

    Args:
        key: the slot key.
        owner: who won the claim; None where there is none.
        done_by: who wrote the done marker; None where there is none.
        record: None where there is none, or where it is damaged.
        damage: what is wrong with its keys, "" for nothing.
        raw: the record as it stands in Redis.
        deadline: when it may be taken over, ms of Redis's time; None where it is not among the open slots.
        dead_since: since when it is a dead letter, ms; None where it is none.
    """

    key: str
    owner: str | None
    owner_ttl: int | None
    done_by: str | None
    done_ttl: int | None
    record: Record | None
    record_ttl: int | None
    damage: str
    deadline: int | None
    dead_since: int | None
    raw: Mapping[str, str] = field(default_factory=dict)


class VersionKnown(NamedTuple):
    """One schedule version of a job: known since, last seen, and the fleet's uptime when it was; ms of Redis's time."""

    version: str
    since: int
    seen: int
    uptime: int


class JobKnown(NamedTuple):
    """A job in the registry."""

    name: str
    versions: tuple[VersionKnown, ...]

    @property
    def since(self) -> int:
        """Since when it is known, ms."""
        return min((each.since for each in self.versions), default=0)

    @property
    def seen(self) -> int:
        """When a replica last said that it knows it, ms."""
        return max((each.seen for each in self.versions), default=0)


class Gap(NamedTuple):
    """Slots that nobody decided: fire times in (after, until], recorded when and by whom; ms."""

    after: int
    until: int
    recorded: int
    replica: str
    why: str


class ProcessSeen(NamedTuple):
    """A replica or worker in its registry: when it was last seen, ms, and what it said of itself."""

    id: str
    seen: int
    about: Mapping[str, Any]


def slot_of(key: str, replies: Sequence[Any]) -> SlotKept:
    """Read the replies about one slot: claim, done marker and record, each with its life; deadline; dead since."""
    damages = [str(each) for each in replies if isinstance(each, Exception)]
    owner, owner_ttl, done, done_ttl, raw, record_ttl, deadline, dead = (
        None if isinstance(each, Exception) else each for each in replies
    )
    record, damage = record_of(raw or {})
    if damage:
        damages.append(damage)
    return SlotKept(
        key=key,
        owner=owner,
        owner_ttl=_life(owner_ttl),
        done_by=done,
        done_ttl=_life(done_ttl),
        record=record,
        record_ttl=_life(record_ttl),
        damage="; ".join(dict.fromkeys(damages)),
        deadline=as_instant(deadline),
        dead_since=as_instant(dead),
        raw=raw or {},
    )


def record_of(raw: Mapping[str, str]) -> tuple[Record | None, str]:
    """Read a record; None and what is wrong where it is damaged, None and "" where there is none."""
    if not raw:
        return None, ""
    try:
        state = SlotState(raw.get("state", ""))
    except ValueError:
        return None, f"the record has a state that this version does not know: {raw.get('state')!r}"
    numbers, damage = _numbers(raw)
    if damage:
        return None, damage
    try:
        terms = Terms.parse(raw.get("terms", ""))
    except (ValueError, IndexError, TypeError):
        return None, f"the terms in the record are damaged: {raw.get('terms')!r}"
    record = Record(
        state=state,
        by=raw.get("by", ""),
        task=raw.get("task", ""),
        version=raw.get("version", ""),
        worker=raw.get("worker", ""),
        terms=terms,
        past=_past(raw),
        events=as_number(raw.get("events")),
        why=raw.get("why", ""),
        error=raw.get("error", ""),
        is_unsent="unsent" in raw,
        behind=raw.get("behind", ""),
        numbers=numbers,
    )
    return record, ""


def job_of(name: str, text: str | None) -> JobKnown | None:
    """Read an entry of the registry of jobs, "version:since:seen:uptime ..."; None where there is none."""
    return JobKnown(name, versions_of(text)) if text is not None else None


def versions_of(text: str) -> tuple[VersionKnown, ...]:
    """Read the versions of a job in the registry, "version:since:seen:uptime ..."."""
    versions = []
    for word in text.split():
        version, *times = word.split(":")
        since, seen, uptime = map(as_number, (*times, "", "", "")[:3])
        versions.append(VersionKnown(version, since, seen, uptime))
    return tuple(versions)


def gap_of(line: str) -> Gap | None:
    """Read an entry of a job's gaps, "after until recorded replica why"; None where it is damaged."""
    words = line.split(" ", 4)
    if len(words) < 5 or not all(word.isdecimal() for word in words[:3]):
        return None
    return Gap(int(words[0]), int(words[1]), int(words[2]), words[3], words[4])


def process_of(name: str, text: str) -> ProcessSeen:
    """Read an entry of a registry of processes, "seen about"."""
    seen, _, about = text.partition(" ")
    try:
        facts = json.loads(about)
    except ValueError:
        facts = None
    return ProcessSeen(name, as_number(seen), facts if isinstance(facts, dict) else {})


def as_instant(score: float | None) -> int | None:
    """Read a score as ms since the epoch; None where it is none, or no date."""
    return int(score) if score is not None and 0 <= score < _LATEST else None


def as_number(text: str | None) -> int:
    """Read a whole number; 0 where there is none."""
    return int(text) if text and text.isdecimal() and len(text) < 16 else 0


def _numbers(raw: Mapping[str, str]) -> tuple[Numbers, str]:
    """Read the numbers of a record, and say what is wrong with them."""
    found, damage = [], ""
    for name in Numbers._fields:
        text = raw.get(name) or "0"
        if not text.isdecimal() or int(text[:20]) >= _LATEST:
            damage = damage or f"{name} in the record is no number: {text!r}"
        found.append(as_number(text))
    numbers = Numbers(*found)
    return numbers, damage or ("" if numbers.fire else "the record has no fire time")


def _life(ttl: int | None) -> int | None:
    return ttl if ttl is not None and ttl >= 0 else None


def _past(raw: Mapping[str, str]) -> tuple[PastEvent, ...]:
    found = []
    for name, text in raw.items():
        if name.startswith("past.") and name[5:].isdecimal():
            times, _, words = text.partition(" ")
            at, _, began = times.partition(",")
            found.append((int(name[5:]), PastEvent(as_number(at), words, as_number(began))))
    return tuple(event for _, event in sorted(found))
