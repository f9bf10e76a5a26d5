"""A primary behind three Sentinels: found, lost, and found again under its replica's address, with no slot lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis.asyncio.sentinel

from slotqueue import Every, Policy, SlotQueue, StoreUnavailable
from slotqueue.events import Event, ServerChanged, StoreBack, StoreLost
from slotqueue.hold import AsyncHold
from slotqueue.protocols import Process
from tests.connections import documents
from tests.connections.enqueuers import Listing
from tests.connections.sentinels import SERVICE, Watched, watched
from tests.connections.steps import live_a_life, opened, opened_blocking

pytestmark = pytest.mark.alone  # what is too slow to answer counts as dead


@pytest.fixture(scope="module")
def pair() -> Iterator[Watched]:
    with watched() as pair:
        yield pair


async def test_the_primary_is_found_by_both_sides(pair: Watched) -> None:
    pair.primary.flush()
    await live_a_life(pair.url)
    behind = redis.asyncio.sentinel.Sentinel([("127.0.0.1", port) for port in pair.ports])
    pair.primary.flush()
    await live_a_life(behind.master_for(SERVICE))
    pair.primary.flush()


async def test_the_how_to_for_sentinels_runs(pair: Watched) -> None:
    pytest.importorskip("arq")
    hosts = ",".join(f"127.0.0.1:{port}" for port in pair.ports)
    places = {"sentinel-1,sentinel-2,sentinel-3": hosts}
    places |= {f'("sentinel-{i}", 26379)': f'("127.0.0.1", {port})' for i, port in enumerate(pair.ports, start=1)}
    slots = await documents.starts("sentinel", places)
    assert list(slots.enqueuers) == ["arq"]


async def test_a_name_that_no_sentinel_knows_is_unavailable_in_one_line(pair: Watched) -> None:
    url = pair.url.replace(SERVICE, "nobody").replace("://", "://app:s3cr3t@")
    async with opened(url) as store:
        with opened_blocking(url) as blocking:
            for ask in (store.run, lambda command: asyncio.to_thread(blocking.run, command)):
                with pytest.raises(StoreUnavailable, match=r"/nobody/0: No master found for 'nobody'$") as caught:
                    await ask(store.verbs.overdue(1))
                assert "s3cr3t" not in str(caught.value)


def _mail(pair: Watched, listing: Listing, events: list[Event]) -> SlotQueue:
    policy = Policy(on_crash="complete", lookback=20)
    slots = SlotQueue(pair.url, enqueuer=listing, defaults=policy, on_event=events.append)
    slots.add("mail", Every(seconds=1))
    return slots


def _missing(listing: Listing) -> set[int]:
    """Seconds between the first and the last fire time that nobody enqueued."""
    fires = {message.slip.fire for message in listing.messages}
    return set(range(min(fires), max(fires), 1000)) - fires


async def test_replicas_go_on_after_a_primary_was_killed_and_no_slot_is_lost(pair: Watched) -> None:
    listing, events = Listing(), list[Event]()
    one, other = _mail(pair, listing, events), _mail(pair, listing, events)
    guard = one._systems.open_guard(Process("w1", tasks=("listing:mail",)))
    guard.start()
    async with one, other:
        hold = await guard.begin((await listing.next()).slip, from_fence="")
        assert isinstance(hold, AsyncHold)
        killed = pair.primary
        await asyncio.to_thread(killed.kill)
        while not _told(events, StoreBack):
            await listing.next(30)
        async with hold:
            pass  # its end is written at a server that may never have heard of its begin
        await guard.stop()
    assert _missing(listing) == set()
    assert _told(events, StoreLost)
    assert _told(events, ServerChanged)
    pair.await_agreement()


def _told(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]
