"""`replicas_to_ack`: what is enqueued or begun is known to a replica of Redis, or it is put off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from functools import partial
from typing import TypeVar

import pytest

from slotqueue import ConfigurationError, Every, Policy, SlotQueue
from slotqueue.answers import Dropped
from slotqueue.errors import StoreUnavailable
from slotqueue.events import EnqueueRefused, Event, SlotTakenOver
from slotqueue.guard import AsyncGuard, SyncGuard
from slotqueue.guard_events import RunPostponed
from slotqueue.hold import Hold
from slotqueue.messages import Slip
from slotqueue.ops.checking import check
from slotqueue.ops.site import Site
from slotqueue.protocols import ANY_FENCE, Process
from slotqueue.store import AsyncStore, BlockingStore
from tests.connections import documents
from tests.connections.enqueuers import Listing
from tests.connections.replication import primary_with_replica
from tests.servers import Server
from tests.store.stage import NAMESPACE, Stage

pytestmark = pytest.mark.alone  # what is too slow to answer counts as dead

T = TypeVar("T", bound=Event)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    with primary_with_replica() as pair:
        yield pair


async def test_a_slot_is_enqueued_once_a_replica_has_its_claim_and_put_off_until_then(
    pair: tuple[Server, Server],
) -> None:
    primary, replica = pair
    listing, events = Listing(), list[Event]()
    slots = SlotQueue(
        primary.url,
        enqueuer=listing,
        defaults=Policy(on_crash="complete"),
        replicas_to_ack=1,
        sweep_every=0.1,
        on_event=events.append,
    )
    slots.add("mail", Every(seconds=1))
    try:
        async with slots:
            first = await listing.next()
            assert replica.ask(f"GET {first.slip.key}") == primary.ask(f"GET {first.slip.key}") != ""
            replica.pause()
            while not (refused := _told(events, EnqueueRefused)):
                await asyncio.wait_for(slots.store.client.ping(), 30)
            while len(_told(events, EnqueueRefused)) < 2:
                await asyncio.wait_for(slots.store.client.ping(), 30)
            so_far = {message.slip.key for message in listing.messages}
            assert [each for each in refused if each.key in so_far] == []
            replica.resume()
            waiting = {each.key for each in _told(events, EnqueueRefused)}
            while waiting - {message.slip.key for message in listing.messages}:
                await listing.next()
    finally:
        replica.resume()
    assert "0 of 1 replicas of Redis acknowledged the claim within 1 s" in refused[0].problem
    assert {each.key for each in _told(events, SlotTakenOver)} >= {refused[0].key}
    sent = [message.slip.key for message in listing.messages]
    assert len(sent) == len(set(sent))
    primary.flush()


async def test_a_run_begins_once_a_replica_has_its_begin_and_is_handed_back_otherwise(
    pair: tuple[Server, Server],
) -> None:
    primary, replica = pair
    primary.flush()
    stage, events = Stage(primary.url), list[Event]()
    open_store = partial(BlockingStore, primary.url, NAMESPACE, replicas_to_ack=1)
    store = AsyncStore(primary.url, NAMESPACE, replicas_to_ack=1)
    guards = (
        AsyncGuard(Process("w1"), store, open_heartbeat_store=open_store, emit=events.append),
        SyncGuard(Process("w2"), open_store(), open_heartbeat_store=open_store, emit=events.append),
    )
    for guard in guards:
        slip = stage.queued(stage.job(on_crash="skip"))
        replica.pause()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas of Redis acknowledged the begin within 1 s"):
            await _begun(guard, slip)
        assert stage.state(slip.key) == "postponed"
        assert [event.key for event in _told(events, RunPostponed)][-1] == slip.key
        again = stage.enqueued_again(slip.key)
        replica.resume()
        hold = await _begun(guard, again)
        assert isinstance(hold, Hold)
        assert replica.ask(f"HGET {slip.key}:record fence") == str(hold.run.fence)
        assert replica.ask(f"HGET {slip.key}:record state") == "running"
    await guards[0].stop()
    guards[1].stop()
    stage.close()
    primary.flush()


async def test_what_the_document_says_of_acknowledgement_runs(pair: tuple[Server, Server]) -> None:
    slots = await documents.starts("acknowledge", {"redis://localhost:6379/0": pair[0].url})
    assert slots.store.replicas_to_ack == 1


async def test_check_misses_replicas_that_are_waited_for(pair: tuple[Server, Server]) -> None:
    primary, _ = pair
    for wanted in (1, 2):
        site = Site.of(SlotQueue(primary.url, replicas_to_ack=wanted))
        checked = await check(site)
        await site.close()
        assert checked.is_sound is (wanted == 1), checked
    assert "replicas of Redis that are connected: 1; replicas_to_ack=2 waits for more" in str(checked.findings)


@pytest.mark.parametrize("wrong", [-1, 11, True, 1.0, "1"])
def test_a_number_of_replicas_that_cannot_be_is_refused(wrong: int) -> None:
    with pytest.raises(ConfigurationError, match="no number of replicas") as caught:
        SlotQueue("redis://localhost", replicas_to_ack=wrong)
    assert caught.value.argument == "replicas_to_ack"


async def _begun(guard: AsyncGuard | SyncGuard, slip: Slip) -> Hold | Dropped:
    begun = guard.begin(slip, from_fence=ANY_FENCE)
    return await begun if isinstance(begun, Awaitable) else begun


def _told(events: list[Event], kind: type[T]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]
