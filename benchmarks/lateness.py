"""How long after a slot's instant a worker may take its message, and its job starts; beside arq's own cron."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from arq import cron
from arq.connections import RedisSettings, create_pool
from arq.worker import Worker, func

from benchmarks.report import Figure, percentile
from slotqueue import Every, Policy, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.slots import parse_key, to_ms
from tests.servers import Server

SECONDS = 60


def run() -> Iterator[Figure]:
    """One job a second for a minute, from slotqueue and from arq's cron, into two queues of one server."""
    with Server() as server:
        ours, started, peers = asyncio.run(_measure(server.url))
    yield Figure("a worker may take it behind the instant, p50", percentile(ours, 0.5), "ms", 2)
    yield Figure("a worker may take it behind the instant, p99", percentile(ours, 0.99), "ms", 10)
    yield Figure("a worker may take it behind the instant, worst", max(ours), "ms")
    yield Figure("job starts in an arq worker (polls each 0.5 s), p50", percentile(started, 0.5), "ms")
    yield Figure("arq's own cron: job starts, p50", percentile(peers, 0.5), "ms")
    yield Figure("arq's own cron: job starts, p99", percentile(peers, 0.99), "ms")


async def _measure(url: str) -> tuple[list[float], list[float], list[float]]:
    settings = RedisSettings.from_dsn(url)
    enqueued: list[float] = []
    started: list[float] = []
    peers: list[float] = []

    async def work(ctx: dict[str, Any]) -> None:
        at = time.time() * 1000
        fire = to_ms(parse_key(ctx["job_id"]).fire_time)
        enqueued.append(ctx["score"] - fire)  # from when on arq's workers may take it
        started.append(at - fire)

    async def peer(ctx: dict[str, Any]) -> None:
        peers.append(time.time() * 1000 - int(ctx["job_id"].rpartition(":")[2]))

    options: dict[str, Any] = {"redis_settings": settings, "handle_signals": False, "log_results": False}
    mine = Worker([func(work, name="work")], queue_name="mine", **options)
    theirs = Worker(queue_name="theirs", cron_jobs=[cron(peer, second=None, microsecond=0)], **options)
    slots = SlotQueue(url, enqueuer=ArqEnqueuer(queue_name="mine"), defaults=Policy(on_crash="skip"))
    slots.add("work", Every(seconds=1))
    pool = await create_pool(settings)
    async with slots:
        running = [asyncio.create_task(worker.main()) for worker in (mine, theirs)]
        await asyncio.sleep(SECONDS + 1)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await asyncio.gather(mine.close(), theirs.close(), return_exceptions=True)
    await pool.aclose()
    return enqueued, started, peers
