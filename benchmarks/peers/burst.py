"""Many jobs due at one instant, three replicas: until the last has its message, what came twice, what never."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import Message, Peer
from benchmarks.peers.replicas import run

REPLICAS = 3
CAP_S = 60.0
_QUIET_S = 1.5


def measure(peer: Peer, bin_folder: Path, *, jobs: int) -> dict[str, float]:
    """Seconds to the last job's first message; messages too many; jobs without one, after a minute at most."""
    at = instant(5 + jobs / 2000, whole_minutes=peer.whole_minutes)
    with run(peer, bin_folder, jobs, "burst", at=at) as running:
        running.start(REPLICAS)
        running.wait(at - time.time())
        if running.wait(CAP_S, lambda found: len(found) >= jobs and len({each.job for each in found}) >= jobs):
            running.wait(_QUIET_S)  # for what comes twice
        found = running.messages()
    return judged(found, jobs, at)


def judged(messages: Sequence[Message], jobs: int, at: int) -> dict[str, float]:
    """What the messages of a burst say."""
    firsts: dict[str, float] = {}
    for each in messages:
        firsts.setdefault(each.job, each.at)
    result: dict[str, float] = {"twice": len(messages) - len(firsts), "missing": jobs - len(firsts)}
    if len(firsts) == jobs:
        result["seconds"] = max(firsts.values()) - at
    return result


def instant(ahead: float, *, whole_minutes: bool) -> int:
    """The first whole second, or whole minute, that is so many seconds ahead."""
    step = 60 if whole_minutes else 1
    return int((time.time() + ahead) // step + 1) * step
