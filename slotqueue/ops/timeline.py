"""What happened to a slot, in order, from its record. Pure.

The record keeps the newest claim, enqueue, run and end, and as `past.<i>` what each of them overwrote; the end of an
earlier run carries when that run began.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from slotqueue.slots import SlotState, from_ms
from slotqueue.store.readings import PastEvent, Record, SlotKept
from slotqueue.words import count, duration

_ENDS_WITHOUT_A_RUN = ("finished by ", "rejected by ")
"""How the texts of `past.<i>` begin that tell what a worker made of a message whose run nothing began."""

_RUN_BY = re.compile(
    r"(?:failed in|handed back by|the worker|(?:retried by \S+, was \w+ after )?the run by) (\S+?)(?:[,:]|\s|$)"
)
"""How the texts of `past.<i>` begin that end a run, with its worker."""


class Moment(NamedTuple):
    """Something that happened to a slot, and when (aware UTC instant, Redis's time)."""

    at: datetime
    what: str


class _Step(NamedTuple):
    at: int
    what: str
    began: int = 0


def timeline(kept: SlotKept, record: Record) -> tuple[Moment, ...]:
    """Tell what happened, oldest first; only what is known, never what may have been."""
    gone = discarded(record)
    past = record.past[:-1] if gone else record.past
    steps = [_Step(event.at, event.text, event.began) for event in past]
    numbers = record.numbers
    due, late = _Step(numbers.fire, "due: its fire time"), numbers.claimed - numbers.fire
    if numbers.claimed and late < 0:
        _put(steps, due)  # the queue may have accepted the message before it as well
    _put_queued(steps, record)
    _put_begins(steps, record)
    if record.events > len(record.past):
        steps.insert(0, _Step(numbers.claimed, f"({count(record.events - len(record.past), 'older event')} not kept)"))
    if not numbers.claimed:
        steps.insert(0, due)
    elif late < 0:
        steps.insert(0, _Step(numbers.claimed, f"claimed by {record.by}, ahead of its time"))
    else:
        steps[:0] = (due, _Step(numbers.claimed, f"claimed by {record.by}, {duration(late)} after its fire time"))
    if numbers.ended and not record.state.is_open:
        steps.append(_Step(numbers.ended, _end(kept, record)))
    if gone:
        steps.append(_Step(gone.at, gone.text))
    return tuple(Moment(from_ms(step.at), step.what) for step in steps)


def discarded(record: Record) -> PastEvent | None:
    """Who took a dead letter from the list, and when; None where it is none, or is still listed."""
    newest = record.past[-1] if record.past else None
    return newest if newest is not None and newest.text.startswith("discarded by ") else None


def _put_queued(steps: list[_Step], record: Record) -> None:
    if record.numbers.queued:
        _put(steps, _Step(record.numbers.queued, "the queue accepted the message"))


def _put_begins(steps: list[_Step], record: Record) -> None:
    """Say when each run began: earlier ones by what their ends remember, the newest by the record itself."""
    begins = {event.began: _run_by(event.text) for event in record.past if event.began}
    if record.numbers.began:
        begins[record.numbers.began] = record.worker
    for began, worker in sorted(begins.items()):
        _put(steps, _Step(began, f"begun by the worker {worker or '?'}"))


def _run_by(text: str) -> str:
    """The worker of a run, as the text about its end names it."""
    found = _RUN_BY.match(text)
    return found[1] if found else ""


def _put(steps: list[_Step], new: _Step) -> None:
    """Put it behind all that is not later; of its own millisecond, before the end of a run that began in it as well."""
    later = (i for i, step in enumerate(steps) if step.at > new.at or (step.at == new.at and _follows(step)))
    steps.insert(next(later, len(steps)), new)


def _follows(step: _Step) -> bool:
    """Whether a message that was accepted, or a run that began, in the step's own millisecond came before it."""
    return step.began == step.at or step.what.startswith(_ENDS_WITHOUT_A_RUN)


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
