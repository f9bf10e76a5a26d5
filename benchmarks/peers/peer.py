"""What a peer is to the harness: how it is installed, how one replica of it starts, how its messages are seen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

ROOT = Path(__file__).parents[2]
LOAD_VARIABLE = "BENCH_LOAD"
"""The one variable from which a peer's application reads what is wanted of it, as the JSON of a `Load`."""

When = Literal["second", "burst", "daily"]


@dataclass(frozen=True, slots=True)
class Load:
    """What one run wants of a scheduler.

    Args:
        jobs: how many, named `job-0`, `job-1`, ...
        schedule: each job `second`: once a second; `burst`: at `at`, and in a day at the earliest; `daily`: once a day,
            none within an hour.
        at: epoch seconds, whole: of the burst (a whole minute for peers that say `whole_minutes`); else of now.
        url: the server.
    """

    jobs: int
    schedule: When
    at: int
    url: str

    @property
    def environment(self) -> dict[str, str]:
        """The variable for the application."""
        return {LOAD_VARIABLE: json.dumps(asdict(self))}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica runs: programs of the peer's own environment, and an empty folder of this run's own."""

    url: str
    folder: Path
    bin: Path


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a process: in the folder of the project, with the project's modules on the path."""

    argv: Sequence[str | Path]
    env: dict[str, str] = field(default_factory=dict)

    def environment(self, load: Load) -> dict[str, str]:
        """What the process gets: this process's own variables, the load, the peer's."""
        return {**os.environ, "PYTHONPATH": str(ROOT), **load.environment, **self.env}


def program(name: str, *arguments: str) -> Callable[[Place, Load, int], Command]:
    """How to start replicas that are all alike: a program of the peer's own environment."""
    return lambda place, _load, _number: Command([place.bin / name, *arguments])


@dataclass(frozen=True, slots=True)
class Terms:
    """How a scenario goes about it.

    Args:
        patience: longer than 1 where the machine is slow or busy: how many times the usual to wait for a start.
        far: whether growth is followed to its far end: 50 replicas, 100,000 jobs.
    """

    patience: float = 1.0
    far: bool = False


class Message(NamedTuple):
    """One message that came into a queue.

    Args:
        at: epoch seconds by the server's clock.
        job: `job-0`, ...
        slot: epoch seconds of the instant that it stands for, where the message says so.
        sender: `host:port` of the connection that sent it, where that is known.
    """

    at: float
    job: str
    slot: float | None = None
    sender: str | None = None

    @property
    def port(self) -> int:
        """Of the sender; 0 where it is not known."""
        return int((self.sender or "0").rpartition(":")[2])


class Observer(Protocol):
    """Sees every message that enters the queue, from `__enter__` on."""

    def messages(self) -> Sequence[Message]:
        """All so far, in the order of their coming; cheap to ask often."""

    def sent(self) -> int | None:
        """Commands of clients so far, up to the last look at the messages; None where they are not seen."""


Observing = Callable[[Place], AbstractContextManager[Observer]]


@dataclass(frozen=True, slots=True)
class Peer:
    """One scheduler under measure.

    Args:
        name: for tables.
        package: whose version is shown.
        requirements: for pip.
        replica: the command of replica number 0, 1, ... of the service's scheduler.
        observe: how its messages are seen.
        observe_burst: how they are seen in a burst of 10,000, where that must be otherwise: see `length`.
        setup: one sentence: how it was set up.
        documentation: where its own documentation says so.
        server: what holds its queue.
        prepare: done once before the first replica, such as a schema.
        aligned: whether its job of each second is due on whole seconds; else a second after its last.
        whole_minutes: whether its burst can only be on a whole minute.
        slow_start: how many times longer than others it takes to get ready with many jobs; a burst waits for it.
        remarks: what a reader must know beside its figures, such as a lock's length.
    """

    name: str
    package: str
    requirements: tuple[str, ...]
    replica: Callable[[Place, Load, int], Command]
    observe: Observing
    setup: str
    documentation: str
    server: Literal["valkey", "postgres"] = "valkey"
    observe_burst: Observing | None = None
    prepare: Callable[[Place, Load], None] | None = None
    aligned: bool = True
    whole_minutes: bool = False
    slow_start: float = 1.0
    remarks: str = ""
