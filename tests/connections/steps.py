"""A slot's whole life over a store, each step with its answer: whatever the connection, all of it must work."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from slotqueue.answers import Gap, Known, Offer, Run, Word
from slotqueue.jobs import Job
from slotqueue.messages import Refused, Slip
from slotqueue.ops.site import Site
from slotqueue.policy import Policy
from slotqueue.protocols import Process
from slotqueue.slots import Slot, key_at, to_ms
from slotqueue.store import AsyncStore, BlockingStore

DAY_MS = 24 * 3600 * 1000
HOUR = timedelta(hours=1)


def job_called(name: str = "rollup") -> Job:
    policy = Policy(on_crash="complete")
    return Job(name=name, schedule=f"every {HOUR}", task=f"do_{name}", enqueuer="arq", policy=policy, period=HOUR)


def slot_of(job: Job, namespace: str, ago: int = 60) -> Slot:
    fire = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=ago)
    return Slot(key_at(namespace, job.name, fire), job.name, fire, fire - HOUR)


def slip_of(job: Job, slot: Slot, n: int = 0) -> Slip:
    return Slip(slot.key, n, to_ms(slot.fire_time), to_ms(slot.start), job.task_name, job.version, job.terms.text)


@contextlib.asynccontextmanager
async def opened(redis: Any, namespace: str = "ran", **more: Any) -> AsyncIterator[AsyncStore]:
    store = AsyncStore(redis, namespace, **more)
    try:
        yield store
    finally:
        await store.close()


@contextlib.contextmanager
def opened_blocking(redis: Any, namespace: str = "ran", **more: Any) -> Iterator[BlockingStore]:
    store = BlockingStore(redis, namespace, **more)
    try:
        yield store
    finally:
        store.close()


async def live_a_life(redis: Any, namespace: str = "ran") -> None:
    """Take a slot from its claim to its end by every verb, async and blocking, and read all that is read."""
    async with opened(redis, namespace, app="shop") as store:
        with opened_blocking(redis, namespace, app="shop") as blocking:
            await _live(store, blocking, namespace)


async def _live(store: AsyncStore, blocking: BlockingStore, namespace: str) -> None:
    run, say, verbs = store.run, blocking.run, store.verbs
    job = job_called()
    slot, other = slot_of(job, namespace), slot_of(job, namespace, 3660)
    slip = slip_of(job, slot)
    known = Known(job.name, job.schedule_version)
    epoch = (await run(verbs.register(Process("r1"), [known], epoch="e", is_last=True))).epoch
    assert say(verbs.enlist(Process("w1", tasks=(job.task_name,)))) > 0
    claims = await run(verbs.claim([Offer(job, slot), Offer(job, other)], replica="r1", epoch=epoch))
    assert [each.word for each in claims.verdicts] == [Word.WON, Word.WON]
    gap = Gap(job, to_ms(slot.fire_time), to_ms(slot.fire_time) + 1000, "older than the lookback", slots=1)
    assert await run(verbs.miss([gap], replica="r1", epoch=epoch)) == [to_ms(slot.fire_time)]
    assert [each.word for each in await run(verbs.confirm([slip]))] == [Word.QUEUED]
    assert [each.word for each in await run(verbs.release([(slip_of(job, other), Refused("no"))]))] == [Word.RELEASED]
    open_keys = await run(verbs.open_keys(0, 10))
    assert len(open_keys) == 2
    assert [each.key for each in await run(verbs.waiting([slot.key]))] == [slot.key]
    begun = say(verbs.begin(slip, token="t", worker="w1", from_fence=""))
    assert isinstance(begun, Run)
    assert [each.word for each in say(verbs.heartbeat([begun]))] == [Word.YES]
    assert say(verbs.postpone(begun, 0, "retry")).word is Word.YES
    again = await run(verbs.begin(slip, token="t2", worker="w1", from_fence=begun.fence))
    assert isinstance(again, Run)
    assert say(verbs.finish(again)).word is Word.YES
    await store.client.zadd(f"{namespace}:open", {other.key: 1})
    assert (await run(verbs.overdue(10))).keys == [other.key]
    (taken,) = await run(verbs.take_over([other.key], [job.task_name], replica="r1", contact_ms=DAY_MS))
    assert taken.slip is not None
    assert [each.word for each in await run(verbs.confirm([taken.slip]))] == [Word.QUEUED]
    assert (await run(verbs.reject(other.key, 1, "unknown task"))).word is Word.DEAD
    await _read(store, namespace, slot.key, other.key)
    await _fail(store, blocking, namespace)
    assert await run(verbs.leave("r1")) == 1


async def _fail(store: AsyncStore, blocking: BlockingStore, namespace: str) -> None:
    """End a run by each side, as a failure."""
    job = job_called("report")
    slots = [slot_of(job, namespace, ago) for ago in (60, 3660)]
    known = [Known(job.name, job.schedule_version)]
    epoch = (await store.run(store.verbs.register(Process("r1"), known, epoch="e", is_last=True))).epoch
    await store.run(store.verbs.claim([Offer(job, slot) for slot in slots], replica="r1", epoch=epoch))
    for slot, is_blocking in zip(slots, (False, True), strict=True):
        begun = await store.run(store.verbs.begin(slip_of(job, slot), token="t", worker="w1", from_fence=""))
        assert isinstance(begun, Run)
        failed = store.verbs.fail(begun, "no such customer")
        assert (blocking.run(failed) if is_blocking else await store.run(failed)).word is Word.DEAD


async def _read(store: AsyncStore, namespace: str, done: str, dead: str) -> None:
    """Ask all that a reader asks."""
    reader = Site(store, namespace).reader
    first, second = await reader.slots([done, dead])
    assert first.record is not None
    assert second.record is not None
    assert (first.record.state, second.record.state) == ("done", "dead")
    assert await reader.states([done, dead]) == ["done", "dead"]
    assert await reader.newest(["rollup"], 5) == [done, dead]
    assert await reader.open_keys(5) == []
    assert await reader.dead_keys(5) == [dead]
    assert (await reader.job("rollup")).known is not None
    assert list(await reader.jobs()) == await reader.job_names() == ["rollup"]
    assert len((await reader.gaps(["rollup"]))["rollup"]) == 1
    assert list(await reader.tasks()) == ["arq:do_rollup"]
    assert [each.id for each in await reader.replicas()] == ["r1"]
    assert [each.id for each in await reader.workers()] == ["w1"]
    server_ms = await reader.now()
    assert abs(server_ms - datetime.now(UTC).timestamp() * 1000) < 60_000
