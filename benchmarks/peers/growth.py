"""What more replicas and more jobs cost: a burst of 1,000 with 1 to 50 replicas, idling with 100 to 100,000 jobs."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.peers import burst, idle
from benchmarks.peers.peer import Peer, Terms

BURST = 1_000
REPLICAS, MORE_REPLICAS = (1, 10), (50,)
JOBS, MORE_JOBS = (100,), (100_000,)
CAP_S = 120
"""Once a point took longer, there is no further one."""


def replicas(peer: Peer, bin_folder: Path, terms: Terms) -> dict[str, float]:
    """By number of replicas: commands of the server for a burst of 1,000, and CPU seconds of all replicas for it."""
    figures: dict[str, float] = {}
    for count in (*REPLICAS, *(MORE_REPLICAS if terms.far else ())):
        began = time.monotonic()
        found = burst.measure(peer, bin_folder, terms, jobs=BURST, replicas=count)
        figures |= {f"{name} {count}": found[name] for name in ("commands", "cpu", "missing", "twice")}
        if time.monotonic() - began > CAP_S * terms.patience:
            break
    return figures


def jobs(peer: Peer, bin_folder: Path, terms: Terms) -> dict[str, float]:
    """By number of jobs: what idling costs."""
    figures: dict[str, float] = {}
    for count in (*JOBS, *(MORE_JOBS if terms.far else ())):
        began = time.monotonic()
        found = idle.measure(peer, bin_folder, terms, jobs=count)
        figures |= {f"{name} {count}": value for name, value in found.items()}
        if time.monotonic() - began > CAP_S * terms.patience:
            break
    return figures
