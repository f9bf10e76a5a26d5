"""The seams: what the parts ask of each other, and the values that cross between them.

A lost race, a stale fence and a duplicate are answers, not exceptions. Only a store that cannot be reached raises
(`StoreUnavailable`); every verb may then be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from slotqueue.answers import (
    Changes,
    Claims,
    Dropped,
    Gap,
    Known,
    Offer,
    Overdue,
    Registered,
    Run,
    StoredEntry,
    Takeover,
    Verdict,
    Written,
)
from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Refused, Slip, Waiting

T = TypeVar("T")


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


class Enqueuer(Protocol):
    """An adapter to one worker system. `kind` stands before a task's name wherever tasks are registered.

    One that knows how long a message takes in a large batch may say so, as `seconds_a_message`: then a first burst is
    claimed as fast as its queue can follow. Else that is measured, with a few messages first.

    One that can do something for a message before its time may say how long before it wants it, as `ahead_seconds`:
    then it gets messages up to so much earlier, and sees to it that no worker takes one before `Message.not_before`.
    """

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
        """Say that a replica is here and which jobs it knows: each once, in chunks of 1,000 at most; marks the last."""
        ...

    def enlist(self, worker: Process) -> Command[int]:
        """Say that a guarded worker is here and which tasks it knows; answers Redis's time."""
        ...

    def vouch(self, tasks: Sequence[str]) -> Command[int]:
        """Say that guarded workers run these tasks, to a Redis that has lost its data; answers Redis's time."""
        ...

    def leave(self, process_id: str) -> Command[int]:
        """Say that a replica or worker goes on purpose."""
        ...

    def own(self, app: str) -> Command[str]:
        """Say that the namespace is this application's; answers whose it is."""
        ...

    def claim(self, offers: Sequence[Offer], *, replica: str, epoch: str, ahead_ms: int = 0) -> Command[Claims]:
        """Claim slots; a batch in one round trip. Where slots may overlap, up to `ahead_ms` before their time."""
        ...

    def taken(self, keys: Sequence[str]) -> Command[int]:
        """Ask how many of these slots are claimed, by whomever."""
        ...

    def miss(self, gaps: Sequence[Gap], *, replica: str, epoch: str) -> Command[list[int]]:
        """Record gaps as missed, and count their slots; answers from when (ms, exclusive) each is one.

        That is its `after` where it was recorded; 0 where all was decided; later where some was: then it was not
        recorded, and its slots from there on are to be counted and said.
        """
        ...

    def letters(self, after: int, limit: int) -> Command[list[tuple[str, int]]]:
        """Ask for dead letters, and since when (ms) each is one: from `after` on, the oldest first."""
        ...

    def told(self, keys: Sequence[str]) -> Command[list[tuple[str, str, str]]]:
        """Ask how slots stand: state, why they ended, last error; each "" where there is none."""
        ...

    def confirm(self, slips: Sequence[Slip]) -> Command[list[Verdict]]:
        """Say that the queue holds each message: `QUEUED`, `SENT` (nobody will report) or `STALE`."""
        ...

    def release(self, refusals: Sequence[tuple[Slip, Refused]]) -> Command[list[Verdict]]:
        """Say that the queue refused each, or gave it back unrun: `RELEASED` or `STALE`."""
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

    def postpone(self, run: Run, delay_ms: int, why: str, *, is_message_gone: bool = False) -> Command[Verdict]:
        """Hand a run back cleanly: `YES` or `STALE`.

        The worker system itself will run it again in `delay_ms`; where its message is gone, the sweep will.
        """
        ...

    def fail(self, run: Run, error: str) -> Command[Verdict]:
        """Say that the worker system gave up: `DEAD`, `FAILED` (another attempt is due) or `STALE`."""
        ...

    def reject(self, key: str, n: int, why: str) -> Command[Verdict]:
        """Say that the message of enqueue n ended unrun: `DEAD`, `FAILED` or `STALE`."""
        ...

    def put(self, job: str, text: str, schedule_version: str, *, expected: int | None) -> Command[Written]:
        """Store a job; `expected` is the version that it must have, 0 for none, None for any."""
        ...

    def remove(self, job: str, *, expected: int | None) -> Command[Written]:
        """Take a stored job out: no slot of it is claimed any more, and none from before is begun."""
        ...

    def changes(self, known: int, *, epoch: str, limit: int) -> Command[Changes | None]:
        """Ask what has changed about the stored jobs since a version; None where the epoch is another."""
        ...

    def restore(self, entries: Sequence[StoredEntry]) -> Command[int]:
        """Bring back stored jobs that Redis lost; answers how many."""
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

    async def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """Send one command, and wait until as many replicas of Redis as were asked for have what it wrote.

        Returns:
            The answer, and what stands against trusting it: "" where nothing does.

        Raises:
            StoreUnavailable: its effect is not known; ask again.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class ReplicaStore(Store, Protocol):
    """What a replica needs besides: to learn whether the server is another one."""

    @property
    def connects(self) -> int:
        """How many connections were made so far: where it has grown, the server may be another one."""
        ...

    async def history(self) -> str:
        """Name the server and the history of writes that it continues; "" where that cannot be told.

        Another answer than before means that the newest writes may be missing: a failover, or a restart.

        Raises:
            StoreUnavailable: ask again.
        """
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

    def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """Do the same as `Store.run_acknowledged`.

        Raises:
            StoreUnavailable: its effect is not known; ask again.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...
