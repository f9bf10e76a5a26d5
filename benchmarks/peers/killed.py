"""A job each second, three replicas, SIGKILL for the one that sent last: slots lost, and the silence until the next."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.peers.peer import Peer, Terms
from benchmarks.peers.second import by_slot, ticking

CAP_S = 60
_AFTER_S = 3


def measure(peer: Peer, bin_folder: Path, terms: Terms) -> dict[str, float]:
    """Seconds without a message beyond the one that is usual; seconds of which no message came. A minute at most."""
    with ticking(peer, bin_folder, terms) as running:
        if not running:
            return {"silent": 1}
        seen = len(running.messages())
        running.wait(5, lambda found: len(found) > seen)
        last = running.messages()[-1]
        running.kill_sender(last)
        killed = time.time()
        back = running.wait(CAP_S, lambda found: found[-1].at > max(killed, last.at + 0.5))
        if back:
            running.wait(_AFTER_S)
        found = running.messages()
    if not back:
        return {"over a minute": 1}
    slots = by_slot(found)
    first, end = int(last.at) - 1, max(slots)
    after = [each.at for each in found if each.at > last.at]
    gaps = [later - earlier for earlier, later in zip([last.at, *after], after, strict=False)]
    return {"gap": max(0.0, max(gaps) - 1), "lost": sum(each not in slots for each in range(first, end))}
