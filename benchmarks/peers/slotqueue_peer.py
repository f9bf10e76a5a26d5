"""slotqueue in front of arq."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from benchmarks.peers.length import growing_zset
from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import ROOT, Peer, program


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`ZADD arq:queue NX <score> <slot key> ...`."""
    if command[0].upper() == "ZADD" and command[1] == "arq:queue":
        for key in command[2:]:
            if key.startswith("ran:"):
                yield job_and_slot(key)


def job_and_slot(key: str) -> tuple[str, float]:
    """Of a slot key: `ran:job-7:2026-10-02T03:00`, with `:30` behind it where seconds are not zero."""
    _, job, text = key.split(":", 2)
    return job, datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


OTHERWISE = (
    "Its burst of 10,000 is few and long commands, which `MONITOR` would slow down:"
    " there the length of the queue was asked each few milliseconds instead."
)
PEER = Peer(
    name="slotqueue (arq)",
    package="slotqueue",
    requirements=("--editable", f"{ROOT}[arq]", "arq"),
    replica=program("slotqueue", "run", "benchmarks.peers.slotqueue_app:slots"),
    observe=watching(read, mark='"ZADD" "arq:queue"'),
    observe_burst=growing_zset("arq:queue", lambda entry: job_and_slot(entry.decode())),
    setup='`slotqueue run` of an application with `ArqEnqueuer()` and `on_crash="complete"`, all else as by default',
    documentation="quickstart.md",
    remarks=OTHERWISE,
)
