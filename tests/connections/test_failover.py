"""One address, behind which another server takes over: noticed however quick it was, and no slot is lost by it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slotqueue import Every, Policy, SlotQueue
from slotqueue.events import DataLost, Event, ServerChanged, SlotEnqueued, SlotTaken, StoreBack, StoreLost
from tests.connections.enqueuers import Listing
from tests.connections.replication import in_step, primary_with_replica
from tests.proxy import Proxy
from tests.servers import Server
from tests.waiting import eventually


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    with primary_with_replica() as pair:
        yield pair


class Watching:
    """One replica of an application, what it enqueued and what it told."""

    def __init__(self, url: str) -> None:
        self.listing = Listing()
        self.events: list[Event] = []
        policy = Policy(on_crash="complete", lookback=20)
        self.slots = SlotQueue(url, enqueuer=self.listing, defaults=policy, on_event=self.events.append)
        self.slots.add("mail", Every(seconds=1))

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    async def confirms(self) -> None:
        """Wait for a message whose slot is confirmed: before that, its own claim is answered as won again."""
        while not self.told(SlotEnqueued):
            await self.slots.store.client.ping()

    async def enqueues(self, count: int) -> None:
        """Wait for so many more messages."""
        for _ in range(count):
            await self.listing.next()

    def fires(self) -> list[int]:
        """The fire times of all messages so far."""
        return [message.slip.fire for message in self.listing.messages]

    def missing(self) -> set[int]:
        """Fire times between the first and the last that nobody enqueued."""
        fires = set(self.fires())
        return set(range(min(fires), max(fires), 1000)) - fires


async def test_a_failover_that_no_call_noticed_is_made_good(pair: tuple[Server, Server]) -> None:
    primary, replica = pair
    with Proxy(primary.port) as proxy:
        one = Watching(proxy.url)
        async with one.slots:
            await one.enqueues(1)
            await one.confirms()
            in_step(primary)
            replica.ask("REPLICAOF NO ONE")  # from now on it lags
            await one.enqueues(2)
            before = [message.slip for message in one.listing.messages]
            unheard = {slip.fire for slip in before if replica.ask(f"EXISTS {slip.key}") == "0"}
            proxy.cut_over(replica.port)
            await one.enqueues(2)  # anew, or what the new server had never heard of
            await eventually(lambda: all(one.fires().count(fire) == 2 for fire in unheard))
    assert len(one.told(ServerChanged)) == 1
    assert not one.told(StoreLost)
    assert not one.told(DataLost)
    assert one.missing() == set()
    assert len(unheard) >= 2
    assert {one.fires().count(slip.fire) for slip in before if slip.fire not in unheard} == {1}


async def test_a_new_connection_to_the_same_server_is_no_failover(pair: tuple[Server, Server]) -> None:
    primary, _ = pair
    with Proxy(primary.port) as proxy:
        one = Watching(proxy.url)
        async with one.slots:
            await one.enqueues(1)
            proxy.cut_over(primary.port)
            await one.enqueues(2)
    assert not one.told(ServerChanged)
    assert not one.told(SlotTaken)
    assert one.fires() == sorted(set(one.fires()))


async def test_a_primary_that_was_demoted_is_left_and_its_refusals_are_no_lost_races(
    pair: tuple[Server, Server],
) -> None:
    """Case 56."""
    primary, replica = pair
    with Proxy(primary.port) as proxy:
        one = Watching(proxy.url)
        async with one.slots:
            await one.enqueues(1)
            await one.confirms()
            in_step(primary)
            replica.ask("REPLICAOF NO ONE")
            primary.ask(f"REPLICAOF 127.0.0.1 {replica.port}")
            while not one.told(StoreLost):
                await one.slots.store.client.ping()
            proxy.aim(replica.port)
            await one.enqueues(2)
    assert one.told(StoreBack)
    assert one.told(ServerChanged)
    assert not one.told(DataLost)
    assert one.missing() == set()
    assert any("read only" in str(event) for event in one.told(StoreLost))
