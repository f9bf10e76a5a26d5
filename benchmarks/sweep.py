"""A sweep over many finished and few open slots, and what a finished slot costs in Redis."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from benchmarks.report import Figure
from benchmarks.stage import enlist_worker
from slotqueue import Every, Policy, SlotQueue
from slotqueue.answers import Offer, Run
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.messages import Slip
from slotqueue.protocols import ANY_FENCE, Process
from slotqueue.slots import Slot, key_at, to_ms
from tests.servers import Server

FINISHED, OPEN, JOBS = 100_000, 10, 100
_BATCH = 500


def run() -> Iterator[Figure]:
    """100,000 slots go through claim, confirm, begin and finish; ten stay queued."""
    with Server() as server:
        seconds, size = asyncio.run(_measure(server))
    yield Figure("a sweep over 100,000 finished and 10 open slots, median", statistics.median(seconds) * 1000, "ms", 5)
    yield Figure("Redis memory of a finished slot, all keys together", size, "bytes", 900)


async def _measure(server: Server) -> tuple[list[float], float]:
    slots = SlotQueue(server.url, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
    for i in range(JOBS):
        slots.add(f"nightly-rollup-{i:03}", Every(days=1), task="rollup")
    await slots.tick()
    before = await _used(slots)
    await _finish_many(slots, FINISHED)
    size = (await _used(slots) - before) / FINISHED
    await _claim(slots, FINISHED, OPEN)
    seconds = []
    for _ in range(21):
        began = time.perf_counter()
        await slots.sweep()
        seconds.append(time.perf_counter() - began)
    await slots.close()
    return seconds, size


async def _used(slots: SlotQueue) -> int:
    return int((await slots.store.client.info("memory"))["used_memory"])


async def _claim(slots: SlotQueue, first: int, count: int) -> list[Slip]:
    jobs = list(slots.jobs.values())
    midnight = datetime(2026, 1, 1, tzinfo=UTC)
    offers = []
    for i in range(first, first + count):
        job, fire = jobs[i % JOBS], midnight - timedelta(minutes=i // JOBS)
        slot = Slot(key_at(slots.namespace, job.name, fire), job.name, fire, fire - timedelta(days=1))
        offers.append(Offer(job, slot))
    verbs = slots.store.verbs
    await enlist_worker(slots, "rollup")
    registered = await slots.store.run(verbs.register(Process("bench"), [], epoch="x", is_last=False))
    await slots.store.run(verbs.claim(offers, replica="web-1-4711-5f3a9c", epoch=registered.epoch))
    slips = [
        Slip(each.slot.key, 0, to_ms(each.slot.fire_time), to_ms(each.slot.start), each.job.task_name,
             each.job.version, each.job.terms.text)
        for each in offers
    ]  # fmt: skip
    await slots.store.run(verbs.confirm(slips))
    return slips


async def _finish_many(slots: SlotQueue, count: int) -> None:
    verbs, run = slots.store.verbs, slots.store.run
    for first in range(0, count, _BATCH):
        slips = await _claim(slots, first, _BATCH)
        begins = [verbs.begin(s, token=s.key[-16:], worker="worker-1-4711-5f3a9c", from_fence=ANY_FENCE) for s in slips]
        runs = await asyncio.gather(*(run(begin) for begin in begins))
        await asyncio.gather(*(run(verbs.finish(each)) for each in runs if isinstance(each, Run)))
