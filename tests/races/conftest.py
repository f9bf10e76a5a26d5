"""Fixtures of the tests of races."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.hand import Hand

NewFleet = Callable[..., Fleet]


@pytest.fixture
def new_fleet(redis_url: str, tmp_path: Path) -> Iterator[NewFleet]:
    """Makes fleets over one Redis; their processes end with the test."""
    made: list[Fleet] = []

    def make(**defaults: object) -> Fleet:
        made.append(Fleet(redis_url, tmp_path, **defaults))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()
        print(fleet.logs())


@pytest.fixture
def hand(redis_url: str) -> Iterator[Hand]:
    """A replica by hand, on the same Redis."""
    hand = Hand(redis_url)
    yield hand
    hand.close()
