"""rq's cron: a process of its own that knows of no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Command, Load, Peer, Place

_NAME, _JOBS = "rq:cron_job:", ":jobs"


def _replica(place: Place, load: Load, number: int) -> Command:  # noqa: ARG001 - all are alike
    argv: list[str | Path] = [
        place.bin / "rq",
        "cron",
        "--url",
        load.url,
        "--logging-level",
        "WARNING",
        "benchmarks.peers.rq_app",
    ]
    return Command(argv, {"TZ": "UTC"})


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`ZADD rq:cron_job:job-7:jobs <score> <id>`, in one transaction with the push, which names no job."""
    if len(command) == 4 and command[0] == "ZADD" and command[1].startswith(_NAME):
        yield command[1].removeprefix(_NAME).removesuffix(_JOBS), None


PEER = Peer(
    name="rq cron",
    package="rq",
    requirements=("rq",),
    replica=_replica,
    observe=watching(read, mark='"ZADD" "rq:cron_job:'),
    setup="three `rq cron` with `cron.register(..., cron=...)`; a sixth field for seconds, in UTC",
    documentation="https://python-rq.org/docs/cron/",
    remarks="Its replicas know nothing of each other; three send each message three times."
    " With `interval=1` each instant counts from the last message and drifts by what that was late.",
)
