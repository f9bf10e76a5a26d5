"""What happened to a slot, in order, from its record. Pure.

The record keeps the newest claim, enqueue, run and end, and as `past.<i>` what each of them overwrote.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from slotqueue.ops.words import count, duration
from slotqueue.slots import SlotState, from_ms
from slotqueue.store.readings import Record, SlotKept

_ENDS_A_RUN = ("failed in ", "handed back by ", "finished by ", "rejected by ")
"""How the texts of `past.<i>` begin that come after a begin of the same millisecond."""


class Moment(NamedTuple):
    """Something that happened to a slot, and when (aware UTC instant, Redis's time)."""

    at: datetime
    what: str


class _Step(NamedTuple):
    at: int
    what: str


def timeline(kept: SlotKept, record: Record) -> tuple[Moment, ...]:
    """Tell what happened, oldest first; only what is known, never what may have been."""
    steps = [_Step(event.at, event.text) for event in record.past]
    _put_queued(steps, record)
    _put_begun(steps, record)
    numbers = record.numbers
    if record.events > len(record.past):
        steps.insert(0, _Step(numbers.claimed, f"({count(record.events - len(record.past), 'older event')} not kept)"))
    if numbers.claimed:
        late = duration(numbers.claimed - numbers.fire)
        steps.insert(0, _Step(numbers.claimed, f"claimed by {record.by}, {late} after its fire time"))
    steps.insert(0, _Step(numbers.fire, "due: its fire time"))
    if numbers.ended and not record.state.is_open:
        steps.append(_Step(numbers.ended, _end(kept, record)))
    return tuple(Moment(from_ms(step.at), step.what) for step in steps)


def _put_queued(steps: list[_Step], record: Record) -> None:
    queued = record.numbers.queued
    if queued:
        place = sum(step.at < queued or (step.at == queued and not _ends_a_run(step)) for step in steps)
        steps.insert(place, _Step(queued, "the queue accepted the message"))


def _put_begun(steps: list[_Step], record: Record) -> None:
    began = record.numbers.began
    if began:
        place = sum(step.at < began or (step.at == began and not _ends_a_run(step)) for step in steps)
        steps.insert(place, _Step(began, f"begun by the worker {record.worker or '?'}"))


def _ends_a_run(step: _Step) -> bool:
    return step.what.startswith(_ENDS_A_RUN)


def _end(kept: SlotKept, record: Record) -> str:
    numbers = record.numbers
    match record.state:
        case SlotState.DONE:
            took = f", {duration(numbers.ended - numbers.began)} after it began" if numbers.began else ""
            return f"done: finished by {kept.done_by or record.worker or '?'}{took}"
        case SlotState.SENT:
            return "sent: no guarded worker knows the task, so nobody reports what becomes of it"
        case state:
            return f"{state.value}: {record.why or 'no reason is on record'}"
