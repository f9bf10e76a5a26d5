"""All that an operator asks and does, once: whatever the connection and the rights, it must be answered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slotqueue import Every, Policy, SlotQueue
from slotqueue.ops.findings import Severity
from tests.connections.enqueuers import Listing


async def sit_down(url: str, namespace: str) -> None:
    """Let a replica tick, and go through every verb of `slots.ops`."""
    listing = Listing()
    slots = SlotQueue(url, namespace=namespace, enqueuer=listing, defaults=Policy(on_crash="complete"))
    slots.add("mail", Every(seconds=1))
    async with slots:
        key = (await listing.next()).slip.key
        await _ask(slots, key)
        await _act(slots)


async def _ask(slots: SlotQueue, key: str) -> None:
    ops, now = slots.ops, datetime.now(UTC)
    await ops.status()
    assert key in {row.key for row in (await ops.recent()).rows}
    assert (await ops.account(key)).key == key
    assert len(await ops.replicas()) == 1
    assert await ops.workers() == []
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
    await ops.retry_letters()
    await ops.discard_letters()
