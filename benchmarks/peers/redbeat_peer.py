"""redbeat: beats that keep the schedule in Redis, of which one holds a lock and the others wait for it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.beat_peer import read
from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Command, Load, Peer, Place

_LOOP_S = 4


def _replica(place: Place, load: Load, number: int) -> Command:  # noqa: ARG001 - all are alike
    argv: list[str | Path] = [place.bin / "celery", "-A", "benchmarks.peers.celery_app", "beat"]
    argv += ["-S", "redbeat.RedBeatScheduler"]
    if load.schedule == "second":
        argv += ["--max-interval", str(_LOOP_S)]
    return Command(argv)


PEER = Peer(
    name="redbeat",
    package="celery-redbeat",
    requirements=("celery-redbeat", "celery[redis]"),
    replica=_replica,
    observe=watching(read, mark='"LPUSH" "celery"'),
    setup="three `celery beat -S redbeat.RedBeatScheduler` with the entries of celery beat",
    documentation="https://redbeat.readthedocs.io/en/latest/intro.html",
    whole_minutes=True,
    slow_start=3,
    remarks=f"A job a second has `--max-interval {_LOOP_S}`, so that the lock lasts {_LOOP_S * 5} s. By default a lock"
    " whose holder was killed stays for 1,500 s, and those who wait for it look each 300 s. A pass sleeps a full second"
    " after a job of each second, so that its lateness grows by the length of a pass until a second is passed over.",
)
