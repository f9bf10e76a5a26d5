"""APScheduler 3: a scheduler within each replica of a service, whose jobs put messages into a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Peer, program


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`RPUSH queue job-7`."""
    if len(command) == 3 and command[:2] == ["RPUSH", "queue"]:
        yield command[2], None


PEER = Peer(
    name="APScheduler",
    package="apscheduler",
    requirements=("apscheduler<4", "redis"),
    replica=program("python", "-m", "benchmarks.peers.apscheduler_app"),
    observe=watching(read, mark='"RPUSH" "queue"'),
    setup="a `BackgroundScheduler` in each of three replicas, with `CronTrigger`; all else as by default, so the job"
    " store is in memory: its FAQ says that none can be shared; each job is one `RPUSH`",
    documentation="https://apscheduler.readthedocs.io/en/3.x/faq.html",
    remarks="Its replicas know nothing of each other; three send each message three times. What a busy scheduler has"
    " not begun within `misfire_grace_time`, 1 s by default, is dropped, with a warning in the log.",
)
