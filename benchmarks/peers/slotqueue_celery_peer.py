"""slotqueue in front of Celery."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from benchmarks.peers.length import growing_list
from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import ROOT, Peer, program
from benchmarks.peers.slotqueue_peer import OTHERWISE, job_and_slot


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`LPUSH celery <message>`, whose id is the slot key."""
    if command[:2] == ["LPUSH", "celery"]:
        for message in command[2:]:
            yield _entry(message.encode())


def _entry(message: bytes) -> tuple[str, float]:
    return job_and_slot(json.loads(message)["headers"]["id"])


PEER = Peer(
    name="slotqueue (Celery)",
    package="slotqueue",
    requirements=("--editable", f"{ROOT}[celery]", "celery"),
    replica=program("slotqueue", "run", "benchmarks.peers.slotqueue_celery_app:slots"),
    observe=watching(read, mark='"LPUSH" "celery"'),
    observe_burst=growing_list("celery", _entry),
    setup='`slotqueue run` of an application with `CeleryEnqueuer(app)` and `on_crash="complete"`, else as by default',
    documentation="celery.md",
    remarks=OTHERWISE,
)
