"""Ten thousand jobs due at one instant: one replica alone, arq's own enqueue in sequence, five replicas at once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator

from arq.connections import RedisSettings, create_pool

from benchmarks.report import Figure
from benchmarks.stage import application, enlist_worker, seconds_to_next_burst
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
    instant = time.time() + seconds_to_next_burst()
    for replica in replicas:
        assert replica.stdin
        replica.stdin.write("go\n")
        replica.stdin.flush()
    reports = [json.loads(replica.communicate(timeout=120)[0]) for replica in replicas]
    queued = int(server.ask("ZCARD arq:queue"))
    yield Figure("five replicas at once: messages in the queue", queued, "", JOBS)
    yield Figure("five replicas at once: slots won, all together", sum(each["won"] for each in reports), "", JOBS)
    last = max(each["ended"] for each in reports) - instant
    yield Figure("five replicas at once: from the instant to the last confirm", last, "s")


async def _replica(url: str) -> None:
    slots = application(url, JOBS)
    await slots.tick()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.sleep(seconds_to_next_burst())
    counts = await slots.tick()
    while counts["offered"] < JOBS:
        counts += await slots.tick()
    print(json.dumps({"won": counts["won"], "ended": time.time()}))
    await slots.close()


if __name__ == "__main__":
    asyncio.run(_replica(sys.argv[1]))
