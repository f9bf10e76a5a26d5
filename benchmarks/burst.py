"""Ten thousand jobs due at one instant: one replica alone, arq's own enqueue in sequence, five replicas at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import redis
from arq.connections import RedisSettings, create_pool

from benchmarks.report import Figure
from benchmarks.stage import PERIOD, application, enlist_worker, seconds_to_next_burst
from tests.servers import Server

JOBS = 10_000
REPLICAS = 5


def run() -> Iterator[Figure]:
    """Wall time a job, from the first claim to the last confirm."""
    with Server() as server:
        pass_seconds, waking = asyncio.run(_one_replica(server.url))
        yield Figure("claimed, enqueued to arq and confirmed, one replica, a job", pass_seconds / JOBS * 1e6, "us", 60)
        yield Figure("... and a replica that comes too late spends, a slot", waking / JOBS * 1e6, "us CPU", 10)
        server.flush()
        peer = asyncio.run(_arq_in_sequence(server.url))
        yield Figure("arq's enqueue_job in sequence, a job", peer / JOBS * 1e6, "us")
        server.flush()
        yield from _five_replicas(server)


async def _one_replica(url: str) -> tuple[float, float]:
    slots, late = application(url, JOBS), application(url, JOBS)
    await slots.tick()
    await late.tick()
    await enlist_worker(slots)
    await asyncio.sleep(seconds_to_next_burst() + 0.05)
    began = time.perf_counter()
    counts = await slots.tick()
    took = time.perf_counter() - began
    assert counts["won"] == JOBS, counts
    began = time.process_time()
    counts = await late.tick()
    spent = time.process_time() - began
    assert counts["taken"] == JOBS, counts
    await slots.close()
    await late.close()
    return took, spent


async def _arq_in_sequence(url: str) -> float:
    pool = await create_pool(RedisSettings.from_dsn(url))
    began = time.perf_counter()
    for i in range(JOBS):
        await pool.enqueue_job("work", i, _job_id=f"id-{i}")
    took = time.perf_counter() - began
    await pool.aclose()
    return took


def _five_replicas(server: Server) -> Iterator[Figure]:
    command = [sys.executable, "-m", "benchmarks.burst", server.url]
    replicas = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(REPLICAS)
    ]
    for replica in replicas:
        assert replica.stdout
        assert replica.stdout.readline() == "ready\n"
    while not PERIOD - 1 < seconds_to_next_burst() < PERIOD:  # from now on they know the jobs, and owe no earlier burst
        time.sleep(0.1)
    instant = time.time() + seconds_to_next_burst()
    for replica in replicas:
        assert replica.stdin
        replica.stdin.write("go\n")
        replica.stdin.flush()
    with redis.Redis.from_url(server.url) as client:
        while (queued := int(client.zcard("arq:queue"))) < JOBS and time.time() < instant + 60:
            time.sleep(0.002)
        took = time.time() - instant
        for replica in replicas:  # each looks at the slots of the others a moment later
            replica.communicate(timeout=60)
        claimed = int(client.hget("ran:counts", "claimed") or 0)
        yield Figure("five replicas at once: messages in the queue", int(client.zcard("arq:queue")), "", JOBS)
    assert queued == JOBS, queued
    yield Figure("five replicas at once: slots won, all together", claimed, "", JOBS)
    yield Figure("five replicas at once: from the instant to the last message in the queue", took, "s")


async def _replica(url: str) -> None:
    slots = application(url, JOBS)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    instant = seconds_to_next_burst()
    async with slots:
        await asyncio.sleep(instant + PERIOD / 2)


if __name__ == "__main__":
    asyncio.run(_replica(sys.argv[1]))
