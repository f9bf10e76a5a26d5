"""What the demo gives to each of its processes: where Redis is, a name, a window of slots, and the places to die at.

What a process sees it writes at once to a file of its own, so that no fact is lost when it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, Self

from slotqueue.current import CurrentSlot
from slotqueue.demo.fragile import FragileEnqueuer
from slotqueue.events import Event
from slotqueue.protocols import Enqueuer, Schedule
from slotqueue.slots import from_ms
from slotqueue.store.connections import blocking_client
from slotqueue.window import Window

VARIABLE = "SLOTQUEUE_DEMO"
JOB = "report"
BEFORE_ENQUEUE = "between claim and enqueue"
IN_JOB = "in the middle of a job"
_JOURNAL_SECONDS = 24 * 3600
_STDIN = 0
_NEVER = datetime(2100, 1, 1, tzinfo=UTC)
"""When a worker's window begins: it does not tick."""


class _Redis(Protocol):
    """An async client, such as arq's."""

    async def rpush(self, name: str, *values: str) -> int: ...

    async def expire(self, name: str, time: int) -> bool: ...


class _BlockingRedis(Protocol):
    """A client of `Stage.open_redis`."""

    def rpush(self, name: str, *values: str) -> object: ...

    def expire(self, name: str, time: int) -> object: ...


@dataclass(frozen=True, slots=True)
class Stage:
    """One process's part in the demo; handed over in the environment.

    Args:
        url: of the Redis that both slotqueue and the worker system use.
        namespace: of the demo.
        queue: of the worker system.
        name: of this process: "replica-1", "worker-2".
        every: seconds between two slots.
        slots: how many slots.
        folder: where facts are written, and where the orders to die lie.
        is_replica: whether this process ticks; a worker never needs the window.
    """

    url: str
    namespace: str
    queue: str
    name: str
    every: int
    slots: int
    folder: str
    is_replica: bool

    @classmethod
    def of_this_process(cls) -> Self:
        """Read the environment; the process ends once the demo that started it has gone.

        Raises:
            SystemExit: this process was not started by the demo.
        """
        if VARIABLE not in os.environ:
            raise SystemExit("this application is run by `slotqueue demo`")
        stage = cls(**json.loads(os.environ[VARIABLE]))
        if not stage.is_replica:
            threading.Thread(target=leave_with_the_demo, daemon=True).start()
        return stage

    @property
    def journal(self) -> str:
        """The Redis list to which the jobs write."""
        return journal_of(self.namespace)

    def window(self, schedule: Schedule) -> Window:
        """Cut the schedule to the demo's slots. A replica waits here until all are ready and the start is said."""
        start = _NEVER
        if self.is_replica:
            self.note("Ready")
            start = from_ms(int(_read_line()))
        return Window(schedule, start, start + timedelta(seconds=self.every * self.slots))

    def fragile(self, enqueuer: Enqueuer) -> FragileEnqueuer:
        """Put the place to die at before an enqueuer."""

        def before(key: str) -> None:
            self.may_die(BEFORE_ENQUEUE, key)

        def accepted(key: str) -> None:
            self.note("Accepted", key=key)

        return FragileEnqueuer(enqueuer, before, accepted)

    def may_die(self, place: str, key: str) -> None:
        """Die here as by `kill -9`, if there is an order for this place and slot; it is carried out once."""
        order = order_at(Path(self.folder), place)
        try:
            if order.read_text() != key:
                return
            order.unlink()
        except FileNotFoundError:
            return
        self.note("Died", key=key, place=place)
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    def saw(self, event: Event) -> None:
        """Write an event of slotqueue down."""
        self.note(type(event).__name__, **asdict(event))

    def note(self, what: str, **facts: object) -> None:
        """Append a fact to this process's file, in one write that outlives a kill."""
        line = json.dumps({"at": time.time(), "what": what, **facts}) + "\n"
        path = facts_of(Path(self.folder), self.name)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    async def write_down(self, redis: _Redis, what: str, slot: CurrentSlot) -> None:
        """The job's side effect: one entry in the journal, by which its runs are counted.

        Args:
            redis: an async client, such as arq's.
            what: "begun" or "finished".
            slot: the slot that runs.
        """
        await redis.rpush(self.journal, self._entry(what, slot))
        await redis.expire(self.journal, _JOURNAL_SECONDS)

    def write_down_blocking(self, redis: _BlockingRedis, what: str, slot: CurrentSlot) -> None:
        """The same with a client of `open_redis`, for a worker without an event loop."""
        redis.rpush(self.journal, self._entry(what, slot))
        redis.expire(self.journal, _JOURNAL_SECONDS)

    def open_redis(self) -> _BlockingRedis:
        """Make a client that threads may share; it connects when it is first used."""
        client: _BlockingRedis = blocking_client(self.url)
        return client

    def _entry(self, what: str, slot: CurrentSlot) -> str:
        return json.dumps({"at": time.time(), "what": what, "key": slot.key, "by": self.name, "attempt": slot.attempt})


def journal_of(namespace: str) -> str:
    """The name of the Redis list to which the jobs write."""
    return f"{namespace}:demo-journal"


def facts_of(folder: Path, name: str) -> Path:
    """The file to which a process writes its facts."""
    return folder / f"{name}.facts"


def order_at(folder: Path, place: str) -> Path:
    """The file that orders a death: it holds the key of the slot."""
    return folder / f"die {place}"


def leave_with_the_demo() -> None:
    """Wait until the demo has closed this process's input or is gone, then ask this process to end."""
    while os.read(_STDIN, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _read_line() -> str:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(_STDIN, 1)
        if not byte:
            raise SystemExit(0)  # the demo is over before it began
        line += byte
    return line.decode()
