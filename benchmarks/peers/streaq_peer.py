"""streaQ's cron: the next time of each job stands in Redis; each worker looks each half second what is due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from uuid import UUID

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Observer, Peer, Place, program


class Tasks:
    """Knows the tasks that the jobs' next times stand for: their ids are hashes."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[str, float]] = {}

    def read(self, command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
        """`ZADD streaq:default:cron:schedule <ms> <job>`, and once it is due `XADD <queue> * task_id <id> ...`."""
        match command:
            case [("ZADD" | "zadd"), "streaq:default:cron:schedule", *_, ms, job]:
                at = int(float(ms))
                self._tasks[_task_id(job, at)] = job, at / 1000
            case [("XADD" | "xadd"), _, "*", "task_id", task_id, *_] if task_id in self._tasks:
                yield self._tasks[task_id]


def _task_id(job: str, ms: int) -> str:
    return UUID(bytes=sha256(f"{job}{ms}".encode()).digest()[:16], version=4).hex


def _observe(place: Place) -> AbstractContextManager[Observer]:
    return watching(Tasks().read, mark="streaq:default:")(place)


PEER = Peer(
    name="streaQ",
    package="streaq",
    requirements=("streaq",),
    replica=program("streaq", "run", "benchmarks.peers.streaq_app:worker"),
    observe=_observe,
    setup="`@worker.cron` of a `Worker`, three `streaq run`; seven fields where seconds count",
    slow_start=3,
    documentation="https://streaq.readthedocs.io/en/latest/task.html#cron-jobs",
)
