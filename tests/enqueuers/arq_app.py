"""The module that test workers are started with: `arq tests.enqueuers.arq_app.WorkerSettings`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from typing import Any, ClassVar

import redis
from arq.connections import RedisSettings
from arq.worker import Retry, func

from slotqueue.current import current_slot
from slotqueue.enqueuers.arq import guard_worker
from slotqueue.errors import NotInSlot
from slotqueue.events import Events
from slotqueue.guard import AsyncGuard
from slotqueue.store import AsyncStore, BlockingStore

APP: dict[str, Any] = json.loads(os.environ["TEST_APP"])
_effects = redis.Redis.from_url(APP["broker_url"])

logging.getLogger("slotqueue").addHandler(logging.StreamHandler(sys.stderr))
logging.getLogger("slotqueue").setLevel(logging.DEBUG)


def mark(ctx: dict[str, Any], what: str) -> None:
    _effects.rpush(f"effects:{ctx['job_id']}", json.dumps({"what": what, "try": ctx["job_try"], "pid": os.getpid()}))


async def quick(ctx: dict[str, Any], *args: object, **kwargs: object) -> str:
    mark(ctx, "ran")
    return "quickly"


async def tells(ctx: dict[str, Any], **kwargs: object) -> None:
    try:
        slot = current_slot()
    except NotInSlot:
        mark(ctx, "no slot")
        return
    in_thread = await asyncio.to_thread(current_slot)
    told = {
        "key": slot.key,
        "job": slot.job,
        "fire_time": slot.fire_time.isoformat(),
        "start": slot.interval.start.isoformat(),
        "end": slot.interval.end.isoformat(),
        "attempt": slot.attempt,
        "idempotency": slot.idempotency_key("mail", 7),
        "is_same_in_thread": in_thread == slot,
        "kwargs": kwargs,
        "ctx": sorted(map(str, ctx)),
    }
    mark(ctx, json.dumps(told))


async def slow(ctx: dict[str, Any], seconds: float) -> None:
    mark(ctx, "began")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not _effects.exists("go"):  # noqa: ASYNC110 - it is another process that lets go
        await asyncio.sleep(0.05)
    mark(ctx, "ended")


async def blocks(ctx: dict[str, Any], seconds: float) -> None:
    mark(ctx, "began")
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    mark(ctx, "ended")


async def fails(ctx: dict[str, Any]) -> None:
    mark(ctx, "failing")
    raise ValueError("no such customer")


async def fails_long(ctx: dict[str, Any]) -> None:
    raise ValueError("é" * 5000)


async def mends(ctx: dict[str, Any]) -> None:
    if current_slot().attempt == 1:
        await fails(ctx)
    mark(ctx, "ran")


async def retries(ctx: dict[str, Any], times: int, delay: float = 0) -> None:
    if ctx["job_try"] <= times:
        mark(ctx, "retrying")
        raise Retry(defer=delay)
    mark(ctx, "ran")


async def cancels_itself(ctx: dict[str, Any]) -> None:
    mark(ctx, "cancelling")
    raise asyncio.CancelledError


_TASKS: list[Any] = [quick, tells, slow, blocks, fails, fails_long, mends, retries, cancels_itself]


class WorkerSettings:
    functions: ClassVar[list[Any]] = [func(task, **APP["functions"].get(task.__name__, {})) for task in _TASKS]
    redis_settings = RedisSettings.from_dsn(APP["broker_url"])


for name, value in APP["settings"].items():
    setattr(WorkerSettings, name, value)

if APP["is_guarded"]:
    url, namespace, events = APP["store_url"], APP["namespace"], Events()
    guard_worker(
        WorkerSettings,
        namespace=namespace,
        open_guard=lambda worker: AsyncGuard(
            worker,
            AsyncStore(url, namespace, replicas_to_ack=APP["replicas_to_ack"]),
            open_heartbeat_store=lambda: BlockingStore(url, namespace),
            emit=events,
        ),
    )
