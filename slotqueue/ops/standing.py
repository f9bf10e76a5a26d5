"""Where a slot stands and why, in a sentence or two. Pure."""

from __future__ import annotations

from slotqueue.ops.words import count, duration, instant, within
from slotqueue.slots import SlotState
from slotqueue.store.readings import Record, SlotKept


def standing(kept: SlotKept, record: Record, now: int, task_seen: int | None) -> str:
    """Say where a slot stands, what is waited for and who will move it on; or where it ended and why.

    Args:
        kept: all that is kept of the slot.
        record: its record.
        now: Redis's time, ms.
        task_seen: when a guarded worker that knows its task was last seen, ms; None for never.
    """
    said = _open(kept, record, now, task_seen) if record.state.is_open else _ended(kept, record, now)
    if record.error and record.state is not SlotState.DONE:
        said += f" Its last error: {record.error}"
    return said


def _open(kept: SlotKept, record: Record, now: int, task_seen: int | None) -> str:
    numbers = record.numbers
    nth = f"enqueue number {numbers.n + 1}" if numbers.n else "its first enqueue"
    match record.state:
        case SlotState.CLAIMED:
            what = f"It is claimed, and {nth} is under way or was refused."
        case SlotState.HELD:
            what = "It is won, and waits while another slot of its job is out."
        case SlotState.QUEUED:
            what = f"It waits in the queue since {_at(numbers.queued, now)}; no worker has begun it."
            what += _who_could(record, now, task_seen)
        case SlotState.RUNNING:
            what = f"The worker {record.worker} runs it since {_at(numbers.began, now)}."
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
    when = f"at {_at(kept.deadline, now)}"
    will_miss = kept.deadline >= record.numbers.queued + record.terms.retention and not record.terms.requeue
    match record.state:
        case SlotState.RUNNING if record.terms.is_complete:
            act = "another attempt is made"
        case SlotState.RUNNING:
            act = "it is given up as lost, because a repeat would be worse"
        case SlotState.QUEUED if will_miss:
            act = "it is given up as missed"
        case SlotState.HELD:
            act = "a sweep looks again"
        case _:
            act = "it is enqueued again"
    if record.state is SlotState.RUNNING:
        lease = "lasts until" if kept.deadline > now else "has passed:"
        return f"Its lease {lease} {_at(kept.deadline, now)}; once it has passed, {act} by any replica's sweep."
    if kept.deadline <= now:
        return (
            f"Its deadline has passed ({_at(kept.deadline, now)}): {act} by the next sweep of a replica that knows it."
        )
    return f"Unless something happens before, {when} {act} by any replica's sweep."


def _ended(kept: SlotKept, record: Record, now: int) -> str:
    numbers = record.numbers
    when = f" at {_at(numbers.ended, now)}" if numbers.ended else ""
    why = f": {record.why}" if record.why else ""
    match record.state:
        case SlotState.DONE:
            behind = duration(max(0, numbers.ended - numbers.fire))
            again = "" if kept.done_ttl is not None else " Its done marker has expired."
            return f"It is done{when}, {behind} after its fire time.{again}"
        case SlotState.SENT:
            return (
                f"It was handed to the queue{when}, and nobody reports what became of it: no guarded worker had "
                f"registered the task {record.task}."
            )
        case SlotState.DEAD:
            spent = f"{count(numbers.spent, 'attempt')} of {record.terms.max_attempts} spent"
            return f"It is dead{when}{why} ({spent}). Only an operator brings it back."
        case SlotState.LOST:
            return f"It is lost{when}{why}. A repeat would be worse, so only an operator brings it back."
        case state:
            return f"It was {state.value}{when}{why}. It has not run."


def _at(ms: int, now: int) -> str:
    return f"{instant(ms)} ({within(ms, now)})" if ms else "a time that is not on record"
