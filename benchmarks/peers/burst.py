"""Many jobs due at one instant, three replicas: until the last has its message, what came twice, what never."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import Message, Peer, Terms
from benchmarks.peers.replicas import run

REPLICAS = 3
MANY = 10_000
CAP_S = 60.0
_BEFORE_S = 1.2  # some put messages into the queue up to a second ahead
_QUIET_S = 1.5


def measure(peer: Peer, bin_folder: Path, terms: Terms, *, jobs: int, replicas: int = REPLICAS) -> dict[str, float]:
    """Seconds to the last job's first message; messages too many; jobs without one, after a minute at most.

    Beside them what it cost: commands of the server, CPU seconds of all replicas.
    """
    at = instant((4 + replicas / 2 + jobs / 1000 * peer.slow_start) * terms.patience, whole_minutes=peer.whole_minutes)
    observe = peer.observe_burst if jobs >= MANY else None
    with run(peer, bin_folder, jobs, "burst", at=at, observe=observe) as running:
        running.start(replicas)
        running.wait(at - time.time() - _BEFORE_S)
        cpu, commands = running.usage()[0], running.server.commands()
        if running.wait(_BEFORE_S + CAP_S, lambda found: len({each.job for each in found}) >= jobs):
            running.wait(_QUIET_S)  # for what comes twice
        spent = {"commands": running.server.commands() - commands, "cpu": running.usage()[0] - cpu}
        found = running.messages()
    return {**judged(found, jobs, at), **spent}


def judged(messages: Sequence[Message], jobs: int, at: int) -> dict[str, float]:
    """What the messages of a burst say."""
    firsts: dict[str, float] = {}
    for each in messages:
        firsts.setdefault(each.job, each.at)
    result: dict[str, float] = {"twice": len(messages) - len(firsts), "missing": jobs - len(firsts)}
    if len(firsts) == jobs:
        result["seconds"] = max(0.0, max(firsts.values()) - at)  # what waits in the queue for its time is not late
    return result


def instant(ahead: float, *, whole_minutes: bool) -> int:
    """The first whole second, or whole minute, that is so many seconds ahead."""
    step = 60 if whole_minutes else 1
    return int((time.time() + ahead) // step + 1) * step
