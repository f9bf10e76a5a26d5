"""A job each second, three replicas: how late each message is, and how many there are of each slot."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import Message, Peer
from benchmarks.peers.replicas import run
from benchmarks.report import percentile

REPLICAS = 3
SECONDS = 20
_FIRST_WITHIN_S = 40
_SETTLE_S = 3


def measure(peer: Peer, bin_folder: Path, *, seconds: int = SECONDS) -> dict[str, float]:
    """Lateness in ms, and messages a slot."""
    with run(peer, bin_folder, 1, "second") as running:
        running.start(REPLICAS)
        if not running.wait(_FIRST_WITHIN_S, bool):
            return {"missing": seconds}
        running.wait(_SETTLE_S)
        seen = len(running.messages())
        running.wait(seconds)
        found = running.messages()[seen:]
    late = [each * 1000 for each in lateness(found, aligned=peer.aligned)]
    return {
        "late p50": percentile(late, 0.5),
        "late p99": percentile(late, 0.99),
        "late worst": max(late),
        "messages a slot": len(found) / seconds,
    }


def lateness(messages: Sequence[Message], *, aligned: bool) -> list[float]:
    """Seconds of each message behind its instant; 0 where it waits in the queue for an instant still to come.

    The instant is the slot that the message names; else the whole second before it; else, of a peer that is not
    `aligned`, a second after the sender's last, counted from its first.
    """
    firsts: dict[str | None, float] = {}
    late = []
    for each in messages:
        if each.slot is not None:
            late.append(max(0.0, each.at - each.slot))
        elif aligned:
            late.append(each.at - math.floor(each.at))
        else:
            first = firsts.setdefault(each.sender, each.at)
            late.append(each.at - first - round(each.at - first))
    return late


def by_slot(messages: Sequence[Message]) -> dict[int, int]:
    """How many messages there are of each second."""
    counts: dict[int, int] = defaultdict(int)
    for each in messages:
        counts[math.floor(each.at if each.slot is None else each.slot)] += 1
    return counts
