"""The seams: what the parts ask of each other, and the values that cross between them.

A lost race, a stale fence and a duplicate are answers, not exceptions. Only a store that cannot be reached raises
(`StoreUnavailable`); every verb may then be asked again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from slotqueue.jobs import Job, Terms
from slotqueue.slots import Slot

T = TypeVar("T")
_quote = json.encoder.encode_basestring_ascii


class Schedule(Protocol):
    """Fire times. Every argument is an aware instant, every answer an aware UTC instant in whole seconds."""

    def between(self, start: datetime, end: datetime) -> Iterable[datetime]:
        """Iterate the fire times in `[start, end)`, oldest first."""
        ...

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first fire time strictly later than `instant`; None when there is none any more."""
        ...

    def latest_at(self, instant: datetime) -> datetime | None:
        """Return the newest fire time at or before `instant`; None when there is none."""
        ...


# ---- what the queue is given, and what it answers


@dataclass(frozen=True, slots=True)
class Slip:
    """What a message says of its slot: enough to begin it, and to make a record anew that Redis lost.

    Args:
        key: the slot key, also the message id.
        n: the enqueue number, 0 for the first.
        fire: fire time, ms since the epoch.
        start: start of the interval, ms since the epoch.
        task: the task with its worker system, "arq:send_digest".
        version: the version of the job.
        terms: `Terms.text`.
    """

    key: str
    n: int
    fire: int
    start: int
    task: str
    version: str
    terms: str

    def to_json(self) -> str:
        """The text form for a payload or a header: a JSON list of the fields."""
        # Put together by hand: json.dumps takes five times as long, for every message of a burst.
        numbers = f"{self.n}, {self.fire}, {self.start}"
        return f"[{_quote(self.key)}, {numbers}, {_quote(self.task)}, {_quote(self.version)}, {_quote(self.terms)}]"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text form.

        Raises:
            ValueError: the text is not of this form.
        """
        try:
            key, n, fire, start, task, version, terms = json.loads(text)
            Terms.parse(terms)
            return cls(str(key), int(n), int(fire), int(start), str(task), str(version), terms)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"no slip of a slot: {text[:200]!r}") from error


@dataclass(frozen=True, slots=True)
class Message:
    """One unit for the queue; its id is `slip.key`.

    Args:
        slip: what it says of its slot.
        task: the function's name in the worker system.
        args, kwargs: the function's arguments.
        queue: None for the enqueuer's own.
        before: the state that the slot was taken over from, "" at its first enqueue.
        options: of the job.
    """

    slip: Slip
    task: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    queue: str | None
    before: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


class Accepted(NamedTuple):
    """The queue holds the message now; `is_new` is False where it held it already."""

    is_new: bool = True


class Refused(NamedTuple):
    """The queue refused the message, or may have.

    `is_sent_possible`: it may have arrived all the same, a lost reply for example.
    """

    problem: str
    is_sent_possible: bool = False


Delivery = Accepted | Refused


class Waiting(NamedTuple):
    """An open slot whose message is out: queued or postponed, with the number of its enqueue."""

    key: str
    state: str
    n: int
    task: str


class Enqueuer(Protocol):
    """An adapter to one worker system. `kind` stands before a task's name wherever tasks are registered."""

    kind: str

    def check(self, job: Job) -> None:
        """Refuse a job that this worker system could never run.

        Raises:
            ConfigurationError: arguments that do not serialise, for example.
        """
        ...

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """Put messages on their queues, in one round trip where the system can; one answer each, in order.

        Always ends within seconds. Raises nothing for a queue that refuses: that is an answer.
        """
        ...

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        """Look up, in one round trip, which messages the worker system has given up without a word to the guard.

        Returns:
            key -> reason, only for those.
        """
        ...

    async def close(self) -> None:
        """Close connections that the enqueuer opened itself."""
        ...


# ---- what the store is asked, and what it answers


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """One script call and how to read its answer; sent by an async or a sync runner alike.

    Args:
        script: the name of the Lua file, without ending.
        keys: every Redis key that the script touches.
        args: its arguments.
        read: reads the raw reply.
    """

    script: str
    keys: Sequence[str]
    args: Sequence[str | int | bytes]
    read: Callable[[Any], T]


@dataclass(frozen=True, slots=True)
class Known:
    """What a replica knows of a job of its own, in ms since the epoch, 0 for nothing.

    `since`: the job owes nothing from before; `decided`: every slot up to this one is decided.
    """

    job: str
    schedule_version: str
    since: int = 0
    decided: int = 0


class Registered(NamedTuple):
    """The answer to `register`: Redis's time, the namespace's epoch, and what is known of each job, in order."""

    now: int
    epoch: str
    jobs: list[Known]


class Word(StrEnum):
    """The one-word answers of the store."""

    WON = "won"
    TAKEN = "taken"
    EARLY = "early"
    SKIPPED = "skipped"
    QUEUED = "queued"
    SENT = "sent"
    RELEASED = "released"
    STALE = "stale"
    YES = "yes"
    DEAD = "dead"
    FAILED = "failed"
    DONE = "done"
    OVER = "over"
    BUSY = "busy"
    EXPIRED = "expired"
    LOST = "lost"
    MISSED = "missed"
    ENQUEUE = "enqueue"
    GONE = "gone"
    UNKNOWN = "unknown"
    LATER = "later"
    BROKEN = "broken"
    """This slot's keys in Redis are damaged; the detail says how."""


class Verdict(NamedTuple):
    """An answer about one slot of a batch, with a detail where the word needs one."""

    word: Word
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A slot that is due, with its job: what a replica claims."""

    job: Job
    slot: Slot


class Claims(NamedTuple):
    """The answer to `claim`: Redis's time, whether the epoch was the remembered one, a verdict for each offer.

    With a changed epoch nothing was claimed and `verdicts` is empty: Redis lost its data.
    """

    now: int
    is_same_epoch: bool
    verdicts: list[Verdict]


@dataclass(frozen=True, slots=True)
class Gap:
    """Slots of a job that nobody decided and that are not worth catching up: fire times in `(after, until]`, ms."""

    job: Job
    after: int
    until: int
    why: str


class Overdue(NamedTuple):
    """Open slots past their deadline, the longest overdue first, and Redis's time in ms."""

    now: int
    keys: list[str]


class Takeover(NamedTuple):
    """What became of an open slot past its deadline.

    `word` is `ENQUEUE` with the slip to enqueue and the state it had `before`; or where the slot ended or stays:
    `DONE`, `GONE`, `UNKNOWN`, `MISSED`, `SKIPPED`, `LOST`, `DEAD`, `LATER`, `BROKEN`.
    """

    key: str
    word: Word
    detail: str = ""
    before: str = ""
    slip: Slip | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A worker's hold on a slot: proof of a begin, and what every later write about it carries.

    Args:
        slip: what the message said.
        fence: guards every write; grows at each begin. 0 where it is not known (Celery's parent process): then the
            token alone guards `fail`.
        token: unique per delivery, so that a begin whose reply was lost finds its own lease.
        worker: who runs it.
        attempt: 1 for the first.
    """

    slip: Slip
    fence: int
    token: str
    worker: str
    attempt: int

    @property
    def terms(self) -> Terms:
        """The policy under which the slot was claimed."""
        return Terms.parse(self.slip.terms)


class Dropped(NamedTuple):
    """The answer to a begin that may not run: `DONE`, `OVER`, `BUSY`, `SKIPPED`, `EXPIRED`, `LOST` or `BROKEN`."""

    why: Word
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the registries name it.

    Args:
        id: random, made after fork, one a process: "web-1-5f3a9c".
        about: JSON: host, pid, version and whatever an operator wants to see.
    """

    id: str
    about: str = "{}"
    tasks: tuple[str, ...] = field(default=())
    """A worker's tasks with their worker system: "arq:send_digest". Empty for a replica."""


ANY_FENCE = "any"
"""The `from_fence` of a worker system whose messages do not tell which run sent them (arq)."""


class Verbs(Protocol):
    """The verbs of the store as commands. DESIGN.md, section 4, has the table; each Lua file its contract."""

    def register(self, replica: Process, jobs: Sequence[Known], *, epoch: str, is_last: bool) -> Command[Registered]:
        """Say that a replica is here and which jobs it knows; in chunks, the last one marked."""
        ...

    def enlist(self, worker: Process) -> Command[int]:
        """Say that a guarded worker is here and which tasks it knows; answers Redis's time."""
        ...

    def leave(self, process_id: str) -> Command[int]:
        """Say that a replica or worker goes on purpose."""
        ...

    def claim(self, offers: Sequence[Offer], *, replica: str, epoch: str) -> Command[Claims]:
        """Claim slots; a batch in one round trip."""
        ...

    def miss(self, gaps: Sequence[Gap], *, replica: str, epoch: str) -> Command[list[int]]:
        """Record gaps as missed; answers from when (ms, exclusive) each was recorded, 0 where all was decided."""
        ...

    def confirm(self, slips: Sequence[Slip]) -> Command[list[Verdict]]:
        """Say that the queue holds each message: `QUEUED`, `SENT` (nobody will report) or `STALE`."""
        ...

    def release(self, refusals: Sequence[tuple[Slip, Refused]]) -> Command[list[Verdict]]:
        """Say that the queue refused each: `RELEASED` or `STALE`."""
        ...

    def overdue(self, limit: int) -> Command[Overdue]:
        """Ask for open slots past their deadline."""
        ...

    def take_over(
        self, keys: Sequence[str], tasks: Sequence[str], *, replica: str, contact_ms: int
    ) -> Command[list[Takeover]]:
        """Take over open slots past their deadline; `tasks[i]` is "" where this replica does not know the job."""
        ...

    def open_keys(self, offset: int, limit: int) -> Command[list[str]]:
        """Ask for some open slots, by deadline; fewer than `limit` where the end is reached."""
        ...

    def waiting(self, keys: Sequence[str]) -> Command[list[Waiting]]:
        """Ask which of these slots wait for a message that is out."""
        ...

    def begin(self, slip: Slip, *, token: str, worker: str, from_fence: str | int) -> Command[Run | Dropped]:
        """Ask to run a slot."""
        ...

    def heartbeat(self, runs: Sequence[Run]) -> Command[list[Verdict]]:
        """Renew leases: `YES` or `STALE`."""
        ...

    def finish(self, run: Run) -> Command[Verdict]:
        """Write the done marker: `YES` or `STALE`."""
        ...

    def postpone(self, run: Run, delay_ms: int, why: str) -> Command[Verdict]:
        """Hand a run back cleanly; the worker system itself will run it again in `delay_ms`: `YES` or `STALE`."""
        ...

    def fail(self, run: Run, error: str) -> Command[Verdict]:
        """Say that the worker system gave up: `DEAD`, `FAILED` (another attempt is due) or `STALE`."""
        ...

    def reject(self, key: str, n: int, why: str) -> Command[Verdict]:
        """Say that the message of enqueue n ended unrun: `DEAD`, `FAILED` or `STALE`."""
        ...


class Store(Protocol):
    """The coordinating Redis, for async code."""

    @property
    def verbs(self) -> Verbs:
        """The commands that it can run."""
        ...

    async def run(self, command: Command[T]) -> T:
        """Send one command.

        Raises:
            StoreUnavailable: its effect is not known; ask again.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class SyncStore(Protocol):
    """The coordinating Redis, for a thread."""

    @property
    def verbs(self) -> Verbs:
        """The commands that it can run."""
        ...

    def run(self, command: Command[T]) -> T:
        """Send one command.

        Raises:
            StoreUnavailable: its effect is not known; ask again.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...
