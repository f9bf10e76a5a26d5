"""What an operator asks about 10,000 jobs with a day of slots, and the same asked slot by slot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.report import Figure
from slotqueue import Cron, Policy, SlotQueue, SlotState
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.ops import Site, account, audit, recent, status
from slotqueue.slots import key_at, to_ms
from tests.servers import Server

JOBS, HOURS = 10_000, 24
_SLOT_BY_SLOT = 500
"""So many slots are asked for one by one, and the time is that of all."""


def run() -> Iterator[Figure]:
    """10,000 hourly jobs, each at one of 60 minutes, with 24 finished slots: 240,000 slots on record."""
    with Server() as server:
        seconds = asyncio.run(_measure(server))
    for name, most in (("status", 1.0), ("audit --since 24h", 5.0), ("slots --limit 50", 0.3)):
        yield Figure(f"{name}", seconds[name], "s", most)
    yield Figure("the same as audit, asked slot by slot (extrapolated)", seconds["one by one"], "s")
    yield Figure("commands of audit but scripts and reads of indexes", seconds["commands"], "commands", 2000)


async def _measure(server: Server) -> dict[str, float]:
    app = SlotQueue(server.url, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
    for number in range(JOBS):
        app.add(f"job-{number}", Cron(f"{number % 60} * * * *"), task="work")
    await app.tick()
    now = datetime.now(UTC)
    await _seed(app, now)
    since = now - timedelta(hours=HOURS) + timedelta(minutes=5)
    site = Site.at(server.url)
    seconds: dict[str, float] = {}
    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "status": lambda: status(site),
        "audit --since 24h": lambda: audit(site, since=since),
        "slots --limit 50": lambda: recent(site, limit=50),
    }
    for name, question in questions.items():
        await app.store.client.config_resetstat()
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            await question()
            best = min(best, time.perf_counter() - began)
        seconds[name] = best
        calls = await app.store.client.info("commandstats")
        assert not {"cmdstat_keys", "cmdstat_scan"} & calls.keys(), calls
        if name.startswith("audit"):
            outside = sum(stat["calls"] for name, stat in calls.items() if name in _SENT)
            seconds["commands"] = outside / 3
    seconds["one by one"] = await _one_by_one(site, now)
    await site.close()
    await app.close()
    return seconds


_SENT = ("cmdstat_evalsha", "cmdstat_hgetall", "cmdstat_zrange", "cmdstat_time")
"""What a client sends; what scripts call inside costs no round trip."""


async def _one_by_one(site: Site, now: datetime) -> float:
    began = time.perf_counter()
    for number in range(_SLOT_BY_SLOT):
        fire = now.replace(minute=number % 60, second=0, microsecond=0) - timedelta(hours=2)
        found = await account(site, key_at(site.namespace, f"job-{number}", fire))
        assert found.state is SlotState.DONE
    return (time.perf_counter() - began) / _SLOT_BY_SLOT * JOBS * HOURS


async def _seed(app: SlotQueue, now: datetime) -> None:
    """Write what a day leaves behind, as the scripts would."""
    client, namespace = app.store.client, app.namespace
    long_ago = to_ms(now - timedelta(days=2))
    await client.hset(f"{namespace}:jobs", mapping={
        name: ":".join([version, str(long_ago), *rest])
        for name, text in (await client.hgetall(f"{namespace}:jobs")).items() if name
        for version, _, *rest in [text.split(":")]
    })  # fmt: skip
    decided = {}
    for number, job in enumerate(app.jobs.values()):
        newest = now.replace(minute=number % 60, second=0, microsecond=0)
        newest -= timedelta(hours=1) if newest > now else timedelta()
        decided[job.name] = to_ms(newest)
        async with client.pipeline(transaction=False) as pipe:
            listing = {}
            for hour in range(HOURS):
                fire = newest - timedelta(hours=hour)
                key, ms = key_at(namespace, job.name, fire), to_ms(fire)
                listing[key[len(namespace) + len(job.name) + 2 :]] = ms
                record = {
                    "state": "done", "by": "web-1-4711-5f3a9c", "claimed": ms + 5, "n": 0, "fire": ms,
                    "start": ms - 3_600_000, "task": job.task_name, "version": job.version, "terms": job.terms_text,
                    "queued": ms + 9, "began": ms + 20, "fence": ms + 20, "worker": "w-1-4711-5f3a9c", "ended": ms + 99,
                }  # fmt: skip
                pipe.hset(f"{key}:record", mapping=record)
                pipe.pexpire(f"{key}:record", 86_400_000)
            pipe.zadd(f"{namespace}:{job.name}:slots", listing)
            await pipe.execute()
    await client.hset(f"{namespace}:decided", mapping=decided)
