"""arq's cron: every worker looks each half second which cron jobs are due; the job's id lets one message through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Peer, program


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`ZADD arq:queue <score> job-7:<ms of the slot>`."""
    if len(command) == 4 and command[0].upper() == "ZADD" and command[1] == "arq:queue":
        job, _, ms = command[3].rpartition(":")
        yield job, int(ms) // 1000


PEER = Peer(
    name="arq cron",
    package="arq",
    requirements=("arq",),
    replica=program("arq", "benchmarks.peers.arq_app.WorkerSettings"),
    observe=watching(read, mark='"ZADD" "arq:queue"'),
    setup="`cron_jobs` of a `WorkerSettings`, three `arq` workers; the schedule in UTC, `unique` as by default",
    documentation="https://arq-docs.helpmanual.io/#cron-jobs",
)
