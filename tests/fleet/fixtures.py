"""Fixtures over fleets, for whichever folder imports them into its conftest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotqueue import Policy, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.events import Event
from slotqueue.protocols import Enqueuer
from tests.fleet.fleet import Fleet
from tests.fleet.hand import Hand

NewFleet = Callable[..., Fleet]


@pytest.fixture
def new_fleet(redis_url: str, tmp_path: Path) -> Iterator[NewFleet]:
    """Makes fleets; their processes end with the test."""
    made: list[Fleet] = []

    def make(url: str = redis_url, **defaults: Any) -> Fleet:
        made.append(Fleet(url, tmp_path, **defaults))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()
        print(fleet.logs())


@pytest.fixture
def hand(redis_url: str) -> Iterator[Hand]:
    """A replica by hand."""
    hand = Hand(redis_url)
    yield hand
    hand.close()


class Apps:
    """Makes applications in the test's own process, and keeps what they tell."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.events: list[Event] = []
        self._made: list[SlotQueue] = []

    def new(self, url: str = "", *, enqueuer: Enqueuer | None = None, **arguments: Any) -> SlotQueue:
        """Make one with arq on the same Redis."""
        arguments.setdefault("defaults", Policy(on_crash="complete", lease=30))
        app = SlotQueue(url or self.url, enqueuer=enqueuer or ArqEnqueuer(), on_event=self.events.append, **arguments)
        self._made.append(app)
        return app

    def told(self, kind: type[Event]) -> list[Any]:
        """The events of this kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def close(self) -> None:
        for app in self._made:
            await app.stop()


@pytest.fixture
async def apps(redis_url: str) -> AsyncIterator[Apps]:
    """Makes applications in this process; they end with the test."""
    apps = Apps(redis_url)
    yield apps
    await apps.close()
