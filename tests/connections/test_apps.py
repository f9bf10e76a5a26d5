"""`app`: a namespace belongs to the first application that says its name; another one is refused on every side."""

from __future__ import annotations

import asyncio

import pytest

from slotqueue import ConfigurationError, Every, Policy, SlotQueue, StoreUnavailable
from slotqueue.events import Event, StoreBack, StoreLost
from slotqueue.guard_events import HeartbeatTroubled
from slotqueue.ops.checking import check
from slotqueue.ops.findings import Severity
from slotqueue.ops.site import Site
from slotqueue.protocols import Process
from tests.connections import documents
from tests.connections.enqueuers import Listing
from tests.connections.steps import opened

DAY_MS = 86_400_000
REFUSED = "the namespace 'ran' belongs to the app 'shop', and this is 'billing': give it a namespace of its own"


def _app(url: str, name: str | None, listing: Listing, events: list[Event]) -> SlotQueue:
    slots = SlotQueue(
        url, enqueuer=listing, app=name, defaults=Policy(on_crash="complete"), sweep_every=0.1, on_event=events.append
    )
    slots.add("mail", Every(seconds=1))
    return slots


async def test_another_application_is_refused_until_the_namespace_is_free(redis_url: str) -> None:
    theirs, mine, events = Listing(), Listing(), list[Event]()
    async with _app(redis_url, "shop", theirs, []):
        await theirs.next()
        slots = _app(redis_url, "billing", mine, events)
        async with slots:
            await theirs.next()
            assert not slots.is_ready
            assert any(REFUSED in str(event) for event in events if isinstance(event, StoreLost))
            assert mine.messages == []
            await slots.store.client.delete("ran:app")  # as after 90 days without the other
            await mine.next()
    assert any(isinstance(event, StoreBack) for event in events)


async def test_the_name_lives_for_ninety_days_after_it_was_last_said(redis_url: str) -> None:
    async with opened(redis_url, app="shop") as store:
        await store.run(store.verbs.overdue(1))
        assert await store.client.get("ran:app") == "shop"
        await store.client.pexpire("ran:app", DAY_MS)
        await store.run(store.verbs.overdue(1))
        assert await store.client.pttl("ran:app") <= DAY_MS
        await store.run(store.verbs.enlist(Process("w1")))
        assert await store.client.pttl("ran:app") > 89 * DAY_MS


async def test_who_says_no_name_is_let_in_and_takes_none(redis_url: str) -> None:
    async with opened(redis_url) as nameless, opened(redis_url, app="shop") as named:
        await nameless.run(nameless.verbs.overdue(1))
        assert not await nameless.client.exists("ran:app")
        await named.run(named.verbs.overdue(1))
        await nameless.run(nameless.verbs.overdue(1))


async def test_the_guard_of_another_application_hands_its_messages_back(redis_url: str) -> None:
    listing, events = Listing(), list[Event]()
    shop = _app(redis_url, "shop", listing, [])
    async with shop:
        message = await listing.next()
    slots = _app(redis_url, "billing", Listing(), events)
    guard = slots._systems.open_guard(Process("w1", tasks=("listing:mail",)))
    guard.start()
    with pytest.raises(StoreUnavailable, match=REFUSED):
        await guard.begin(message.slip, from_fence="", patience=0)
    async with asyncio.timeout(40):
        while not [event for event in events if isinstance(event, HeartbeatTroubled)]:  # noqa: ASYNC110 - a thread tells
            await asyncio.sleep(0.01)
    assert not await shop.store.client.exists("ran:workers")
    await shop.close()
    await guard.stop()
    with pytest.raises(StoreUnavailable, match=REFUSED):
        slots._systems.open_sync_guard(Process("w2")).begin(message.slip, from_fence="", patience=0)


@pytest.mark.parametrize("name, count", [("shop", 0), (None, 0), ("billing", 1)])
async def test_check_says_whose_the_namespace_is(redis_url: str, name: str | None, count: int) -> None:
    async with opened(redis_url, app="shop") as store:
        await store.run(store.verbs.overdue(1))
    site = Site.of(_app(redis_url, name, Listing(), []))
    checked = await check(site)
    await site.close()
    problems = [each for each in checked.findings if each.severity is Severity.PROBLEM]
    assert len(problems) == count
    assert all("belongs to the app 'shop', and this is 'billing'" in each.text for each in problems)


async def test_what_the_document_says_of_applications_runs(redis_url: str) -> None:
    slots = await documents.starts("app", {"redis://localhost:6379/0": redis_url})
    async with opened(redis_url) as store:
        assert await store.client.get("billing:app") == slots.app == "billing"


@pytest.mark.parametrize("name", ["", "a" * 201, "a\nb"])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name of 1 to 200 printable") as caught:
        SlotQueue("redis://localhost", app=name)
    assert caught.value.argument == "app"
