"""Where a slot stands and why, in a sentence or two. Pure."""

from __future__ import annotations

from slotqueue.ops.timeline import discarded
from slotqueue.slots import SlotState
from slotqueue.store.readings import Record, SlotKept
from slotqueue.words import count, duration, instant, within

_BY_HAND = "Only an operator brings it back: `slotqueue retry`."


def standing(kept: SlotKept, record: Record, now: int, task_seen: int | None) -> str:
    """Say where a slot stands, what is waited for and who will move it on; or where it ended and why.

    Args:
        kept: all that is kept of the slot.
        record: its record.
        now: Redis's time, ms.
        task_seen: when a guarded worker that knows its task was last seen, ms; None for never.
    """
    said = _open(kept, record, now, task_seen) if record.state.is_open else _ended(kept, record, now)
    if (letter := discarded(record)) is not None:
        said += f" It was {letter.text} at {_at(letter.at, now)}."
    if record.error and record.state is not SlotState.DONE:
        said += f" Its last error: {record.error}"
    return said


def _open(kept: SlotKept, record: Record, now: int, task_seen: int | None) -> str:
    numbers = record.numbers
    nth = f"enqueue number {record.enqueues}" if record.enqueues > 1 else "its first enqueue"
    match record.state:
        case SlotState.CLAIMED:
            what = f"It is claimed, and {nth} is under way or was refused."
        case SlotState.HELD:
            what = f"It is won, and held while another slot of its job is in the way: {record.behind or 'unknown'}."
        case SlotState.QUEUED:
            what = f"It has waited in the queue since {_at(numbers.queued, now)}; no worker has begun it."
            what += _who_could(record, now, task_seen)
        case SlotState.RUNNING:
            what = f"The worker {record.worker} has been running it since {_at(numbers.began, now)}."
        case SlotState.POSTPONED:
            what = (
                f"The worker {record.worker} handed it back; the worker system is to run it again, "
                f"from {_at(numbers.waits, now)} on."
            )
        case _:
            spent = f"{count(numbers.spent, 'attempt')} of {record.terms.max_attempts}"
            what = f"The worker system gave it up; {spent} spent, another one is due."
    return f"{what} {_next_step(kept, record, now)}"


def _who_could(record: Record, now: int, task_seen: int | None) -> str:
    if task_seen is None:
        return f" No guarded worker with the task {record.task} is known."
    return f" A guarded worker with the task {record.task} was last seen {within(task_seen, now)}."


def _next_step(kept: SlotKept, record: Record, now: int) -> str:
    """What the sweep does at the deadline."""
    if kept.deadline is None:
        return "It is not among the open slots, so no sweep looks after it: its keys in Redis do not agree."
    when = f"after {_at(kept.deadline, now)}"
    will_miss = kept.deadline >= record.numbers.queued + record.terms.retention and not record.terms.requeue
    match record.state:
        case SlotState.RUNNING if record.terms.is_complete:
            act = "makes another attempt"
        case SlotState.RUNNING:
            act = "gives it up as lost, because a repeat would be worse"
        case SlotState.QUEUED if will_miss:
            act = "gives it up as missed"
        case SlotState.HELD:
            act = "looks whether it may go out"
        case _:
            act = "enqueues it again"
    if record.state is SlotState.RUNNING:
        lease = "lasts until" if kept.deadline > now else "has passed:"
        return f"Its lease {lease} {_at(kept.deadline, now)}; once it has passed, any replica's sweep {act}."
    if kept.deadline <= now:
        return f"Its deadline has passed ({_at(kept.deadline, now)}): the next sweep of a replica with its job {act}."
    return f"Unless something happens before, any replica's sweep {act} {when}."


def _ended(kept: SlotKept, record: Record, now: int) -> str:
    numbers = record.numbers
    when = f" at {_at(numbers.ended, now)}" if numbers.ended else ""
    why = f": {record.why}" if record.why else ""
    match record.state:
        case SlotState.DONE:
            behind = duration(max(0, numbers.ended - numbers.fire))
            again = "" if kept.done_ttl is not None else " Its done marker is gone."
            return f"It was done{when}, {behind} after its fire time.{again}"
        case SlotState.SENT:
            return (
                f"It was handed to the queue{when}, and nobody reports what became of it: no guarded worker had "
                f"registered the task {record.task}."
            )
        case SlotState.DEAD:
            spent = f"{count(numbers.spent, 'attempt')} of {record.terms.max_attempts} spent"
            return f"It was given up as dead{when}{why} ({spent}). {_BY_HAND}"
        case SlotState.LOST:
            return f"It was lost{when}{why}. A repeat would be worse. {_BY_HAND}"
        case state:
            return f"It was {state.value}{when}{why}. It has not run."


def _at(ms: int, now: int) -> str:
    return f"{instant(ms)} ({within(ms, now)})" if ms else "a time that is not on record"
