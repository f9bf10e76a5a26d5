"""What is measured of each peer, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.peers import burst, second
from benchmarks.peers.peer import Peer

LONG_S = 30
"""A repeat that took longer is not done again."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One measurement; `measure` gives figures by name."""

    name: str
    measure: Callable[[Peer, Path], dict[str, float]]


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("second", second.measure),
        Scenario("burst 1,000", partial(burst.measure, jobs=1_000)),
        Scenario("burst 10,000", partial(burst.measure, jobs=10_000)),
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
