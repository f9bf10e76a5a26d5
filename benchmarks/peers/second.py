"""A job each second, three replicas: how late each message is, and how many there are of each slot."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.peer import Message, Peer, Terms
from benchmarks.peers.replicas import Run, run
from benchmarks.report import percentile

REPLICAS = 3
SECONDS = 12
_FIRST_WITHIN_S = 40
_SETTLE_S = 3


@contextmanager
def ticking(peer: Peer, bin_folder: Path, terms: Terms) -> Iterator[Run | None]:
    """Three replicas with a job each second, which have sent messages for a while; None where none came."""
    with run(peer, bin_folder, 1, "second") as running:
        running.start(REPLICAS)
        if running.wait(_FIRST_WITHIN_S * terms.patience, bool):
            running.wait(_SETTLE_S * terms.patience)
            yield running
        else:
            yield None


def measure(peer: Peer, bin_folder: Path, terms: Terms) -> dict[str, float]:
    """Lateness in ms; messages a slot, slots without one; commands carried out and sent, a slot and replica."""
    with ticking(peer, bin_folder, terms) as running:
        if not running:
            return {"messages a slot": 0}
        commands = running.server.commands()
        seen, before = len(running.messages()), running.observer.sent()
        running.wait(SECONDS)
        found, sent = running.messages()[seen:], running.observer.sent()
        commands = running.server.commands() - commands
    if not found:
        return {"messages a slot": 0}
    slots = by_slot(found)
    late = [each * 1000 for each in lateness(found, aligned=peer.aligned)]
    return {
        "late p50": statistics.median(late),
        "late p99": percentile([*late, late[-1]], 0.99),  # of one there are no quantiles
        "late worst": max(late),
        "messages a slot": len(found) / len(slots),
        "missed": sum(each not in slots for each in range(min(slots), max(slots))),
        "commands": commands / SECONDS / REPLICAS,
        **({} if sent is None or before is None else {"sent": (sent - before) / SECONDS / REPLICAS}),
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
