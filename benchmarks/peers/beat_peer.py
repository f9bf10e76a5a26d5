"""Celery's beat: a process of its own that knows of no other."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Command, Load, Peer, Place


def _replica(place: Place, load: Load, number: int) -> Command:  # noqa: ARG001 - all are alike
    schedule = place.folder / f"celerybeat-schedule-{number}"
    return Command([place.bin / "celery", "-A", "benchmarks.peers.celery_app", "beat", "-s", schedule])


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`LPUSH celery <message>`, whose headers show the arguments: `['job-7']`."""
    if len(command) == 3 and command[:2] == ["LPUSH", "celery"]:
        yield ast.literal_eval(json.loads(command[2])["headers"]["argsrepr"])[0], None


PEER = Peer(
    name="celery beat",
    package="celery",
    requirements=("celery[redis]",),
    replica=_replica,
    observe=watching(read, mark='"LPUSH" "celery"'),
    setup="three `celery beat`, each with a schedule file of its own; a job a second is `timedelta(seconds=1)` with"
    " `relative`, which is by the clock; all others are `crontab`",
    documentation="https://docs.celeryq.dev/en/stable/userguide/periodic-tasks.html",
    whole_minutes=True,
    remarks="Its guide says that only one may run; three send each message three times.",
)
