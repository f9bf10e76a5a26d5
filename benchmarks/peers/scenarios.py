"""What is measured of each peer, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.peers import burst, growth, idle, killed, second
from benchmarks.peers.peer import Peer, Terms

LONG_S = 60
"""A repeat that took longer is not done again."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One measurement; `measure` gives figures by name. What is long and hardly spreads is done once."""

    name: str
    measure: Callable[[Peer, Path, Terms], dict[str, float]]
    once: bool = False


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("second", second.measure),
        Scenario("burst 1,000", partial(burst.measure, jobs=1_000)),
        Scenario("burst 10,000", partial(burst.measure, jobs=10_000)),
        Scenario("killed", killed.measure),
        Scenario("idle", partial(idle.measure, jobs=10_000)),
        Scenario("growth of replicas", growth.replicas, once=True),
        Scenario("growth of jobs", growth.jobs, once=True),
    )
}


def chosen(words: list[str]) -> list[Scenario]:
    """All, or those whose name begins with one of the words.

    Raises:
        ValueError: no name does.
    """
    found = [each for name, each in SCENARIOS.items() if not words or any(name.startswith(word) for word in words)]
    if not found:
        raise ValueError(f"no scenario {', '.join(words)}; there are {', '.join(SCENARIOS)}")
    return found
