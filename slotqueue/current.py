"""The slot that the running code works for: known inside a job, in every thread that copied the job's context."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from slotqueue.answers import Run
from slotqueue.errors import NotInSlot
from slotqueue.slots import Interval, from_ms, parse_key

_current: ContextVar[CurrentSlot] = ContextVar("slotqueue_current_slot")


@dataclass(frozen=True, slots=True)
class CurrentSlot:
    """What a job may want to know of the slot that it runs for.

    Args:
        key: the slot key, the same in every attempt.
        job: the job's name.
        fire_time: aware UTC instant.
        interval: what the slot covers: from the previous fire time (inclusive) to its own (exclusive).
        attempt: 1 for the first.
        fence: grows at each begin of the slot: a storage that compares it can refuse a run that was taken over.
    """

    key: str
    job: str
    fire_time: datetime
    interval: Interval
    attempt: int
    fence: int

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read it from a run."""
        fire_time = from_ms(run.slip.fire)
        return cls(
            key=run.slip.key,
            job=parse_key(run.slip.key).job,
            fire_time=fire_time,
            interval=Interval(from_ms(run.slip.start), fire_time),
            attempt=run.attempt,
            fence=run.fence,
        )

    def idempotency_key(self, *parts: object) -> str:
        """Make a key for a side effect that must not happen twice, such as a payment.

        Args:
            parts: what tells one side effect of the slot from another; their texts count.

        Returns:
            32 hexadecimal digits, the same in every attempt of the slot.
        """
        text = json.dumps([self.key, *map(str, parts)])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def current_slot() -> CurrentSlot:
    """Return the slot that this code runs for.

    Raises:
        NotInSlot: it runs for none: outside of a job, or for a message that is no slot.
    """
    try:
        return _current.get()
    except LookupError:
        raise NotInSlot(
            "no slot runs here: current_slot() works inside a job that a guarded worker runs for a slot, and in "
            "threads started with its context (asyncio.to_thread, contextvars.copy_context)"
        ) from None


@contextmanager
def entered(run: Run) -> Iterator[CurrentSlot]:
    """Make a run's slot the current one while the block runs."""
    slot = CurrentSlot.of(run)
    token = _current.set(slot)
    try:
        yield slot
    finally:
        _current.reset(token)
