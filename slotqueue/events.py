"""Every fact that slotqueue reports, one dataclass each, and the one table that says how each is logged.

An event is emitted once, by the part that knows the fact. `Events` logs it and hands it to the application's hooks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

from slotqueue.hooks import Hook, Hooks

logger = logging.getLogger("slotqueue")


@dataclass(frozen=True, slots=True)
class Event:
    """A fact. `level` and `text` say how it is logged; the fields are also the log record's `extra`."""

    level: ClassVar[int] = logging.INFO
    text: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class ReplicaStarted(Event):
    """A replica ticks; it is ready when `jobs` are registered."""

    text: ClassVar[str] = "replica {replica} ticks; jobs: {jobs}"
    replica: str
    jobs: int


@dataclass(frozen=True, slots=True)
class ReplicaStopped(Event):
    """A replica has stopped ticking on purpose."""

    text: ClassVar[str] = "replica {replica} has stopped"
    replica: str


@dataclass(frozen=True, slots=True)
class SlotClaimed(Event):
    """This replica won a slot, `late_ms` after its fire time; negative for ahead of it."""

    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "{key} claimed by {replica}, at {late_ms:+} ms of its time"
    key: str
    job: str
    replica: str
    late_ms: int


@dataclass(frozen=True, slots=True)
class SlotTaken(Event):
    """Another replica was faster: an ordinary lost race."""

    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "{key} is another replica's"
    key: str
    job: str
    replica: str


@dataclass(frozen=True, slots=True)
class SlotSkipped(Event):
    """A slot ended without a run: paused, expired, or another slot of the job was in its way (`overlap`)."""

    text: ClassVar[str] = "{key} skipped: {why}"
    key: str
    job: str
    why: str


@dataclass(frozen=True, slots=True)
class SlotHeld(Event):
    """A slot waits while another one of its job is out: `overlap="hold"`."""

    text: ClassVar[str] = "{key} held: {why}"
    key: str
    job: str
    why: str


@dataclass(frozen=True, slots=True)
class SlotLetGo(Event):
    """A held slot goes out: no other slot of its job is in the way any more."""

    text: ClassVar[str] = "{key} is held no more; enqueue number {nth} by {replica} follows"
    key: str
    job: str
    replica: str
    n: int


@dataclass(frozen=True, slots=True)
class SlotsMissed(Event):
    """Slots that nobody decided, fire times after `after` up to `until` (ISO, UTC), are not caught up.

    `number` says how many there are; None where the schedule fails, or would take too long to say.
    """

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{job}: the slots after {after} up to {until} are missed: {why}"
    job: str
    after: str
    until: str
    why: str
    number: int | None


@dataclass(frozen=True, slots=True)
class SlotEnqueued(Event):
    """The queue holds the message; `is_guarded` tells whether a worker will report on it."""

    text: ClassVar[str] = "{key} enqueued, number {nth}"
    key: str
    job: str
    n: int
    is_guarded: bool


@dataclass(frozen=True, slots=True)
class TaskUnguarded(Event):
    """No guarded worker has registered the task: its slots are sent once and never followed. Said once a task."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = (
        "{task}: no guarded worker has registered this task, so its slots are sent once and never followed; "
        "is it spelt as in the workers, and are they guarded (@slots.worker) and started before the replicas?"
    )
    task: str
    job: str


@dataclass(frozen=True, slots=True)
class EnqueueRefused(Event):
    """The queue refused a message, or may have; the sweep tries again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{key} could not be enqueued: {problem}"
    key: str
    job: str
    n: int
    problem: str


@dataclass(frozen=True, slots=True)
class ConfirmStale(Event):
    """By the time of the confirm the slot had moved on: the worker was faster, or another replica took over."""

    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "{key} had moved on before its enqueue was confirmed"
    key: str
    job: str


@dataclass(frozen=True, slots=True)
class SlotTakenOver(Event):
    """An open slot's deadline had passed; it is enqueued again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{key} taken over by {replica}, was {before}; enqueue number {nth} follows"
    key: str
    job: str
    replica: str
    before: str
    n: int


@dataclass(frozen=True, slots=True)
class SlotOrdered(Event):
    """An operator wants a slot, and this replica enqueues it: retried, rerun, triggered, backfilled."""

    text: ClassVar[str] = "{key} goes out for an operator; enqueue number {nth} by {replica} follows"
    key: str
    job: str
    replica: str
    n: int


@dataclass(frozen=True, slots=True)
class SlotEnded(Event):
    """The sweep found that an open slot is over: missed, skipped or done."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{key} is {state}: {why}"
    key: str
    job: str
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class SlotLost(Event):
    """Its worker vanished after it had begun, and a repeat would be worse."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key} is lost: {why}"
    key: str
    job: str
    why: str


@dataclass(frozen=True, slots=True)
class SlotDead(Event):
    """Given up; only an operator brings it back."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key} is dead: {why}"
    key: str
    job: str
    why: str


@dataclass(frozen=True, slots=True)
class DeadLetterTold(Event):
    """A job was claimed that tells of a dead or lost slot: `SlotQueue(dead_letter=...)`."""

    text: ClassVar[str] = "{key} is dead or lost; {task} is told"
    key: str
    job: str
    task: str


@dataclass(frozen=True, slots=True)
class JobUnknown(Event):
    """An open slot of a job that this replica does not know; it is left to replicas that do."""

    text: ClassVar[str] = "{key}: this replica does not know the job {job}"
    key: str
    job: str


@dataclass(frozen=True, slots=True)
class JobTroubled(Event):
    """A job's schedule could not be computed; it is asked again in a minute, the other jobs go on."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "the schedule of {job} fails: {error}"
    job: str
    error: str


@dataclass(frozen=True, slots=True)
class JobShadowed(Event):
    """A job is stored under the name of one in code; the one in code is what counts here. Said once a job."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "the stored job {job} is not used here: there is one of its name in the code"
    job: str


@dataclass(frozen=True, slots=True)
class JobUnusable(Event):
    """A stored job that this replica cannot run; it is left to others. Said once a version."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "the stored job {job} (version {version}) is left to other replicas: {problem}"
    job: str
    version: int
    problem: str


@dataclass(frozen=True, slots=True)
class JobsChanged(Event):
    """Stored jobs were put or removed, and this replica works by them now."""

    text: ClassVar[str] = "stored jobs changed: {put} put, {removed} removed"
    put: int
    removed: int


@dataclass(frozen=True, slots=True)
class SlotBroken(Event):
    """A slot's keys in Redis are damaged, or from a newer version."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key}: its keys in Redis cannot be used: {what}"
    key: str
    job: str
    what: str


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """Redis does not answer; what is due stays due."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{problem}; what is due stays due"
    problem: str


@dataclass(frozen=True, slots=True)
class StoreBack(Event):
    """Redis answers again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "Redis answers again after {seconds:.1f} s"
    seconds: float


@dataclass(frozen=True, slots=True)
class ServerChanged(Event):
    """A new connection led to another server, or one that was started again: its newest writes may be missing."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = (
        "Redis is another server than before, or was started again: the newest slots of jobs that must complete are "
        "offered again"
    )


@dataclass(frozen=True, slots=True)
class DataLost(Event):
    """The namespace's epoch has changed: Redis was emptied or replaced. The newest slots are offered again."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "Redis has lost its data; the newest slots of jobs that must complete are offered again"
    epoch: str


@dataclass(frozen=True, slots=True)
class ClockStepped(Event):
    """Redis's clock jumped against this host's monotonic one."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "Redis's clock stepped by {step_ms:.0f} ms"
    step_ms: float


@dataclass(frozen=True, slots=True)
class ClockOff(Event):
    """This host's wall clock is off; slots fire by Redis's all the same."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "this host's clock is {offset_ms:.0f} ms ahead of Redis's; slots fire by Redis's"
    offset_ms: float


@dataclass(frozen=True, slots=True)
class PassFailed(Event):
    """A pass of the ticker or sweeper ended in an error that nobody foresaw; the next one goes on."""

    level: ClassVar[int] = logging.CRITICAL
    text: ClassVar[str] = "a {which} failed: {error}"
    which: str
    error: str


@dataclass(frozen=True, slots=True)
class LoopDied(Event):
    """The ticker or the sweeper of this process has ended, and nobody had told it to; the process is not ready."""

    level: ClassVar[int] = logging.CRITICAL
    text: ClassVar[str] = "{which} has ended, this process decides no slots any more: {error}"
    which: str
    error: str


@dataclass(frozen=True, slots=True)
class TickingDisabled(Event):
    """This process was asked to tick, and its environment says that it shall not."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{variable} is set: nothing ticks or sweeps in this process"
    variable: str


@dataclass(frozen=True, slots=True)
class PingFailed(Event):
    """A `heartbeat_url` at `host` could not be asked for: its dead-man's switch may go off."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "the heartbeat to {host} failed: {problem}"
    host: str
    problem: str


@dataclass(frozen=True, slots=True)
class ThreadDeferred(Event):
    """gunicorn preloads the application: each worker will tick in a thread of its own, the master does not."""

    text: ClassVar[str] = "process {pid} preloads the application: it does not tick, each worker that it forks will"
    pid: int


Emit = Callable[[Event], None]


def is_heard(emit: Emit, kind: type[Event]) -> bool:
    """Whether anybody would notice: asked where thousands of slots would make an event each for nobody."""
    return not isinstance(emit, Events) or len(emit.hooks) > 0 or logger.isEnabledFor(kind.level)


class Events:
    """Logs every event and hands it to hooks.

    Args:
        hooks: called with each event, in the thread that emits it; sync ones must not block.
    """

    def __init__(self, *hooks: Hook) -> None:
        self.hooks = Hooks(hooks)

    def __call__(self, event: Event) -> None:
        """Emit one event."""
        if logger.isEnabledFor(event.level):
            facts = {each.name: getattr(event, each.name) for each in fields(event)}
            shown = {**facts, "nth": facts["n"] + 1} if "n" in facts else facts  # people count enqueues from 1
            logger.log(event.level, event.text.format_map(shown), extra={"event": type(event).__name__, "facts": facts})
        self.hooks(event)
