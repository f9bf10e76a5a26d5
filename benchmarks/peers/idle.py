"""Many daily jobs of which none is due, one replica: how soon it comes to rest, and what waiting costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import Peer, Terms
from benchmarks.peers.replicas import Run, run

SECONDS = 6
_SAMPLE_S = 0.1
_STEP_S = 1.5
_STEADY = 0.03
_AT_REST = 0.3
_BUSY = 0.9
_START_CAP_S = 60.0
_LONG_START_S = 25.0
"""Who uses more than `_AT_REST` may still be starting for so long."""

Sample = tuple[float, float]
"""Seconds since the start of the process, and the CPU seconds that it has used."""


def measure(peer: Peer, bin_folder: Path, terms: Terms, *, jobs: int) -> dict[str, float]:
    """Seconds until at rest, CPU in percent of a core, resident MB, the server's CPU; of one replica and its children.

    At rest: since when the use of CPU has been what it stays at. A replica that never takes less than nine
    tenths of a core has no such moment.
    """
    with run(peer, bin_folder, jobs, "daily") as running:
        running.start(1)
        samples = _until_steady(running, terms.patience)
        server = running.server.seconds()
        began = len(samples)
        end = samples[-1][0] + SECONDS
        while samples[-1][0] < end:
            samples.append(_sample(running))
        seconds = running.server.seconds() - server
        size = running.usage()[1]
    use = slope(samples[began:])
    found = {"cpu": use * 100, "memory": size / 1e6, "server cpu": seconds / SECONDS * 100}
    return found if use > _BUSY else {"ready": at_rest(samples, use), **found}


def slope(samples: Sequence[Sample]) -> float:
    """CPU seconds a second, from the first to the last."""
    (begin, used), (end, more) = samples[0], samples[-1]
    return (more - used) / (end - begin)


def at_rest(samples: Sequence[Sample], use: float) -> float:
    """Since when the samples lie on the line that ends at the last of them and rises by `use`."""
    end, total = samples[-1]
    tolerance = max(0.02, 0.01 * total)
    return next(at for at, used in samples if used >= total - use * (end - at) - tolerance)


def _until_steady(running: Run, patience: float) -> list[Sample]:
    """Wait until a step of time costs what the one before it cost, and that does not look like a start."""
    samples, steps = [_sample(running)], [(0.0, 0.0)]
    while samples[-1][0] < _START_CAP_S * patience:
        samples.append(_sample(running))
        if samples[-1][0] - steps[-1][0] >= _STEP_S * patience:
            steps.append(samples[-1])
            latest = slope(steps[-2:])
            most = _AT_REST if samples[-1][0] < _LONG_START_S * patience else _BUSY
            if len(steps) > 3 and latest < most and abs(latest - slope(steps[-3:-1])) < _STEADY:
                break
    return samples


def _sample(running: Run) -> Sample:
    time.sleep(_SAMPLE_S)
    running.messages()  # raises where it has ended
    return time.monotonic() - running.began, running.usage()[0]
