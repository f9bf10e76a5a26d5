"""The facts that a worker reports, in the form of `slotqueue.events`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from slotqueue.events import Event


@dataclass(frozen=True, slots=True)
class RunBegan(Event):
    """A worker holds the lease of a slot and runs it.

    `waited_ms`: since it was claimed, enqueued again or due again; None where that is not known.
    """

    text: ClassVar[str] = "{key} runs in {worker}, attempt {attempt}"
    key: str
    job: str
    worker: str
    attempt: int
    fence: int
    waited_ms: int | None


@dataclass(frozen=True, slots=True)
class RunDone(Event):
    """A run is over and well; its done marker is written. `seconds`: from begin to end."""

    text: ClassVar[str] = "{key} done by {worker}"
    key: str
    job: str
    worker: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunPostponed(Event):
    """A run was handed back cleanly; the worker system runs the slot again."""

    text: ClassVar[str] = "{key} postponed by {delay_ms} ms: {why}"
    key: str
    job: str
    why: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """The worker system gave a run up; the slot is now `state`: dead, or failed with another attempt due."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key} failed and is {state}: {error}"
    key: str
    job: str
    state: str
    error: str


@dataclass(frozen=True, slots=True)
class JobRaised(Event):
    """A function of this process raised; `RunFailed` says what became of the slot."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key} raised\n{trace}"
    key: str
    job: str
    trace: str


@dataclass(frozen=True, slots=True)
class RunLeftBehind(Event):
    """The replica stops, and a function in a thread has not ended: nobody can end it."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{key} goes on in its thread while the replica stops; handed back: {is_handed_back}"
    key: str
    job: str
    is_handed_back: bool
    """Under `on_crash="complete"`; under `"skip"` its lease passes, since a repeat would be worse."""


@dataclass(frozen=True, slots=True)
class RunStale(Event):
    """A run was taken over while it went on; what it had to say changes nothing any more."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{key}: the run by {worker} is not the newest any more; it ends without a word"
    key: str
    job: str
    worker: str


@dataclass(frozen=True, slots=True)
class LeaseLost(Event):
    """A run outlived its lease, or was taken over; `is_cancelled` tells whether it is being stopped."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key}: {worker} has lost the lease: {why}"
    key: str
    job: str
    worker: str
    why: str
    is_cancelled: bool


@dataclass(frozen=True, slots=True)
class EndUnwritten(Event):
    """The end of a run could not be written for as long as its lease lasted; now the policy decides."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key}: could not write that it is to {ending}: {problem}"
    key: str
    job: str
    ending: str
    problem: str


@dataclass(frozen=True, slots=True)
class MessageDropped(Event):
    """A message was not to be run: its slot is done, over, skipped, expired or lost."""

    text: ClassVar[str] = "{key}: message dropped, the slot is {why}"
    key: str
    job: str
    why: str


@dataclass(frozen=True, slots=True)
class MessageHandedBack(Event):
    """A message could not be run now; the worker system has it again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{key}: message handed back for {delay_ms} ms: {why}"
    key: str
    job: str
    why: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class MessageForeign(Event):
    """A message is marked as a slot that this worker cannot judge: of another namespace, or not readable."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "{key}: handed back unrun: {why}"
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class GuardBypassed(Event):
    """A task of a guarded worker lets itself not be guarded: its slots are sent, and nobody reports on them."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "the task {task} is not guarded: {why}"
    task: str
    why: str


@dataclass(frozen=True, slots=True)
class WorkerEnlisted(Event):
    """A guarded worker has said that it is here."""

    text: ClassVar[str] = "worker {worker} enlisted, {tasks} tasks"
    worker: str
    tasks: int


@dataclass(frozen=True, slots=True)
class HeartbeatTroubled(Event):
    """Leases could not be renewed; tried again at once."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "the heartbeat of {worker} is not heard: {problem}"
    worker: str
    problem: str


@dataclass(frozen=True, slots=True)
class HeartbeatBack(Event):
    """Leases are renewed again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "the heartbeat of {worker} is heard again"
    worker: str
