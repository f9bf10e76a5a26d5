"""Slots and their keys: one (job, fire time) is decided once, under one name that every replica computes alike.

A slot key is `<namespace>:<job>:<fire time in UTC>`, with seconds only where they are not zero, so that
sub-minute schedules cannot collide. It parses from the right: a full timestamp ends it, and a job name may hold
colons. Keys that belong to a slot end in a word behind the timestamp, so none can be mistaken for another slot.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from slotqueue.errors import ConfigurationError, InvalidSlotKey

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DEFAULT_NAMESPACE = "ran"
LONGEST_NAME = 200

_KEY = re.compile(
    r"(?P<namespace>[^:]+):(?P<job>.+):"
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?P<mark>~[a-z][0-9a-zA-Z.-]*)?",
    re.ASCII | re.DOTALL,
)


class SlotState(StrEnum):
    """Where a slot stands. The first six are open: somebody still owes something, by a deadline."""

    CLAIMED = "claimed"
    """One replica won it, or took it over, and is about to enqueue it."""
    HELD = "held"
    """Won, and waiting while another slot of the job is out."""
    QUEUED = "queued"
    """The queue accepted the message."""
    RUNNING = "running"
    """A worker holds the lease."""
    POSTPONED = "postponed"
    """The run was handed back cleanly: a retry of the worker system, a graceful stop."""
    FAILED = "failed"
    """The worker system gave up, and another attempt is due."""
    SENT = "sent"
    """Ended: the queue accepted the message and no worker will report on it."""
    DONE = "done"
    """Ended: finished, with a done marker."""
    DEAD = "dead"
    """Ended: given up; the record says why."""
    LOST = "lost"
    """Ended: `on_crash="skip"`, and its worker vanished after it had begun."""
    SKIPPED = "skipped"
    """Ended: paused, overlapped, or expired before its first begin."""
    MISSED = "missed"
    """Ended: nobody decided it in time, coalesced away, its job removed, or waited out its retention."""

    @property
    def is_open(self) -> bool:
        """Whether a deadline stands and the sweep looks after it."""
        return self in _OPEN


_OPEN = frozenset(
    {
        SlotState.CLAIMED,
        SlotState.HELD,
        SlotState.QUEUED,
        SlotState.RUNNING,
        SlotState.POSTPONED,
        SlotState.FAILED,
    }
)


class Interval(NamedTuple):
    """What a slot covers: `start` inclusive, `end` exclusive, aware UTC instants."""

    start: datetime
    end: datetime


# Not frozen, since a burst makes thousands of them; no more to be changed than if it were.
@dataclass(slots=True, unsafe_hash=True)
class Slot:
    """One (job, fire time).

    Args:
        key: the slot key, also the Redis claim key and the id of the message.
        job: the job's name.
        fire_time: aware UTC instant.
        start: the fire time before this one: where the slot's interval begins.
    """

    key: str
    job: str
    fire_time: datetime
    start: datetime

    @property
    def interval(self) -> Interval:
        """From the previous fire time (inclusive) to this one (exclusive)."""
        return Interval(self.start, self.fire_time)


class KeyParts(NamedTuple):
    """What a slot key says. `mark` is "" for a slot of the schedule, `~...` for one that an operator made."""

    namespace: str
    job: str
    fire_time: datetime
    mark: str


def slot_key(job: str, scheduled: datetime, period: timedelta, *, namespace: str = DEFAULT_NAMESPACE) -> str:
    """Compute the key of the slot that `scheduled` falls into.

    Args:
        job: the job's name, see `check_name`.
        scheduled: aware instant; floored to `period` from the Unix epoch in UTC.
        period: > 0; whole seconds.
        namespace: what the key begins with, no ":".

    Raises:
        InvalidSlotKey: a naive instant, a period that is not positive, a name that cannot stand in a key.

    Source: the recipe "Derive a stable slot key" of the guide on singleton jobs; the seconds are ours.
    """
    if scheduled.tzinfo is None or scheduled.utcoffset() is None:
        raise InvalidSlotKey(f"the fire time {scheduled.isoformat()} has no time zone; use datetime(..., tzinfo=UTC)")
    if period <= timedelta(0):
        raise InvalidSlotKey(f"the period must be positive, not {period}")
    check_name(job)
    floored = EPOCH + (scheduled - EPOCH) // period * period
    return key_at(namespace, job, floored)


def key_at(namespace: str, job: str, fire_time: datetime) -> str:
    """Join a key from parts that are known to be sound: `fire_time` in UTC, whole seconds."""
    return f"{namespace}:{job}:{_text_of(fire_time)}"


@lru_cache(maxsize=1024)  # a burst is thousands of slots and one instant
def _text_of(fire_time: datetime) -> str:
    text = fire_time.isoformat()
    return text[:16] if text[17:19] == "00" else text[:19]


def parse_key(key: str) -> KeyParts:
    """Take a slot key apart.

    Raises:
        InvalidSlotKey: the text is no slot key; the message says what one looks like.
    """
    match = _KEY.fullmatch(key)
    if match is not None:
        with suppress(ValueError):  # the 31st of February
            fire_time = datetime.fromisoformat(match["time"]).replace(tzinfo=UTC)
            return KeyParts(match["namespace"], match["job"], fire_time, match["mark"] or "")
    raise InvalidSlotKey(f"{key!r} is no slot key; one looks like 'ran:rollup:2026-10-02T03:00' (UTC)")


def is_slot_key(text: str) -> bool:
    """Tell cheaply whether a message id could be a slot key of any namespace."""
    try:
        parse_key(text)
    except InvalidSlotKey:
        return False
    return True


def check_name(job: str) -> None:
    """Refuse a job name that cannot stand in a key.

    Raises:
        InvalidSlotKey: empty, over 200 characters, or with characters that cannot be printed.
    """
    if not isinstance(job, str) or not job:
        raise InvalidSlotKey(f"a job's name is a text of 1 to {LONGEST_NAME} characters, not {job!r}")
    if len(job) > LONGEST_NAME:
        raise InvalidSlotKey(f"the job name {job[:40]!r}... has {len(job)} characters, {LONGEST_NAME} at most")
    if not job.isprintable():
        raise InvalidSlotKey(f"the job name {job!r} holds characters that cannot be printed")


def check_namespace(namespace: str) -> None:
    """Refuse a namespace that would make keys ambiguous.

    Raises:
        ConfigurationError: empty, over 100 characters, with ":" or characters that cannot be printed.
    """
    if (
        not isinstance(namespace, str)
        or not namespace
        or len(namespace) > 100
        or ":" in namespace
        or not namespace.isprintable()
    ):
        raise ConfigurationError(
            f"{namespace!r} cannot begin a key; use 1 to 100 printable characters without ':', such as 'ran'",
            argument="namespace",
        )


def to_ms(instant: datetime) -> int:
    """Milliseconds since the Unix epoch of an aware instant."""
    delta = instant - EPOCH
    return (delta.days * 86400 + delta.seconds) * 1000 + delta.microseconds // 1000


utc_ms = lru_cache(maxsize=1024)(to_ms)
"""The same for instants in UTC, as fire times are, of which a burst has few; in another zone an hour may come twice."""


@lru_cache(maxsize=1024)  # as above
def from_ms(ms: float) -> datetime:
    """The aware UTC instant of milliseconds since the Unix epoch."""
    return datetime.fromtimestamp(ms / 1000, UTC)
