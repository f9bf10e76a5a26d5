"""SAQ's cron: each worker writes down the next time of each job each second; one of them moves what is due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Observer, Peer, Place, program


class Slots:
    """Remembers for which time a job was written down last."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def read(self, command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
        """`ZADD saq:default:incomplete <time> <id>`, and once it is due `RPUSH saq:default:queued <id>`."""
        match command:
            case ["ZADD", "saq:default:incomplete", at, job_id] if float(at):
                self._times[job_id] = float(at)
            case ["RPUSH", "saq:default:queued", job_id]:
                yield job_id.rpartition(":")[2], self._times.get(job_id)


def _observe(place: Place) -> AbstractContextManager[Observer]:
    return watching(Slots().read, mark=' "saq:default:')(place)


PEER = Peer(
    name="SAQ",
    package="saq",
    requirements=("saq[redis]", "typing_extensions"),  # which it imports and does not ask for
    replica=program("saq", "benchmarks.peers.saq_app.settings"),
    observe=_observe,
    setup="`cron_jobs` in the settings of a worker, three `saq` workers; `unique` and timers as by default",
    slow_start=2,
    documentation="https://saq-py.readthedocs.io/",
    remarks="Its workers write down the next time of every job each second, one command a job. A job whose worker was"
    " killed while it ran is not sent again before a sweep, each 60 s by default, has found it.",
)
