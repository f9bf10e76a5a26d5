"""All that an operator asks and does, once: whatever the connection and the rights, it must be answered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slotqueue import Every, Policy, SlotQueue
from slotqueue.answers import Known, Offer
from slotqueue.guard import AsyncGuard
from slotqueue.hold import AsyncHold
from slotqueue.messages import Message
from slotqueue.ops.findings import Severity
from slotqueue.ops.orders import OrderOutcome
from slotqueue.protocols import Process
from tests.connections.enqueuers import Listing
from tests.connections.steps import job_called, slot_of

TASKS = ("listing:mail", "listing:page")


async def sit_down(url: str, namespace: str) -> None:
    """Let a replica tick, and go through every verb of `slots.ops`."""
    listing = Listing()
    slots = SlotQueue(
        url,
        namespace=namespace,
        enqueuer=listing,
        defaults=Policy(on_crash="complete"),
        dead_letter="page",
        sweep_every=0.1,
    )
    slots.add("mail", Every(seconds=1))
    guard = slots._systems.open_guard(Process("w1", tasks=TASKS))
    await guard.enlist(TASKS)
    async with slots:
        key = (await listing.next()).slip.key
        await _ask(slots, key)
        await _act(slots)
        await _bring_back(slots, guard, listing)
        await _forget(slots)
    await guard.stop()


async def _ask(slots: SlotQueue, key: str) -> None:
    ops, now = slots.ops, datetime.now(UTC)
    await ops.status()
    assert key in {row.key for row in (await ops.recent()).rows}
    assert (await ops.account(key)).key == key
    assert len(await ops.replicas()) == 1
    assert [each.id for each in await ops.workers()] == ["w1"]
    await ops.audit(since=now - timedelta(minutes=1))
    assert await ops.letters() == ((), 0)
    await ops.observe()
    await ops.health()
    assert [each for each in (await ops.check()).findings if each.severity is Severity.PROBLEM] == []


async def _act(slots: SlotQueue) -> None:
    ops, now = slots.ops, datetime.now(UTC)
    await ops.trigger("mail")
    await ops.backfill(await ops.survey("mail", now - timedelta(minutes=5), now - timedelta(minutes=4), most=100))
    assert len(await ops.pause(["mail"], why="a look")) == 1
    assert len(await ops.pauses()) == 1
    await ops.resume(["mail"])
    stored = await ops.put("digest", Every(hours=1), enqueuer="listing", on_crash="skip")
    assert [each.name for each in await ops.stored()] == [stored.name]
    await ops.remove("digest")


async def _bring_back(slots: SlotQueue, guard: AsyncGuard, listing: Listing) -> None:
    """Let slots die: each is told to the pager; one is brought back and then repeated, the others are discarded."""
    ops = slots.ops
    first, second, third = [await _dies(guard, await _next(listing, "mail")) for _ in range(3)]
    pages = [await _next(listing, "dead-letter:mail") for _ in range(3)]
    assert {str(page.kwargs["slot"]) for page in pages} == {first, second, third}
    assert {row.key for row in (await ops.letters())[0]} == {first, second, third}
    assert (await ops.retry(first)).outcome is OrderOutcome.CLAIMED
    async with await _begin(guard, await _next(listing, "mail", first)):
        pass
    again = await ops.rerun(first)
    assert again.outcome is OrderOutcome.CLAIMED
    assert (await _next(listing, "mail", again.key)).slip.key != first
    assert (await ops.retry(second)).outcome is OrderOutcome.CLAIMED
    assert await ops.discard_letters() == (third,)
    assert await ops.retry_letters() == ()


async def _forget(slots: SlotQueue) -> None:
    """Have a job forgotten of which a replica spoke long ago, and with it an open slot."""
    store, job = slots.store, job_called("gone")
    said = store.verbs.register(Process("r0"), [Known(job.name, job.schedule_version)], epoch="e", is_last=True)
    epoch, slot = (await store.run(said)).epoch, slot_of(job, slots.namespace)
    await store.run(store.verbs.claim([Offer(job, slot)], replica="r0", epoch=epoch))
    await store.client.hset(store.verbs.keys.of("jobs"), job.name, f"{job.schedule_version}:1:1:1")
    assert (await slots.ops.forget(job.name)).missed == (slot.key,)


async def _next(listing: Listing, job: str, key: str = "") -> Message:
    """Wait for a message of a job, whose key begins so."""
    while True:
        message = await listing.next()
        told = message.slip.key
        if f":{job}:" in told and told.startswith(key):
            return message


async def _begin(guard: AsyncGuard, message: Message) -> AsyncHold:
    hold = await guard.begin(message.slip, from_fence="")
    assert isinstance(hold, AsyncHold)
    return hold


async def _dies(guard: AsyncGuard, message: Message) -> str:
    """Let the run of a slot fail; returns its key."""
    hold = await _begin(guard, message)
    with pytest.raises(ValueError, match="no such customer"):
        async with hold:
            raise ValueError("no such customer")
    return message.slip.key
