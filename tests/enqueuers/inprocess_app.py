"""The process that functions run in: `python -m tests.enqueuers.inprocess_app`.

A replica enqueues to itself. Here the test is the replica, so the process takes its messages from a list in Redis.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import signal
import sys
import time
from typing import Any

import redis
import redis.asyncio

from slotqueue.current import current_slot
from slotqueue.events import Events
from slotqueue.worker_systems import WorkerSystems

APP: dict[str, Any] = json.loads(os.environ["TEST_APP"])
_effects = redis.Redis.from_url(APP["effects_url"])

logging.getLogger("slotqueue").addHandler(logging.StreamHandler(sys.stderr))
logging.getLogger("slotqueue").setLevel(logging.DEBUG)


def mark(what: str) -> None:
    _effects.rpush(f"effects:{current_slot().key}", json.dumps({"what": what, "pid": os.getpid()}))


def quick(*args: object, **kwargs: object) -> None:
    mark("ran")


async def tells(**kwargs: object) -> None:
    slot = current_slot()
    told = {
        "key": slot.key,
        "job": slot.job,
        "fire_time": slot.fire_time.isoformat(),
        "start": slot.interval.start.isoformat(),
        "end": slot.interval.end.isoformat(),
        "attempt": slot.attempt,
        "is_same_in_thread": await asyncio.to_thread(current_slot) == slot,
        "kwargs": kwargs,
    }
    mark(json.dumps(told))


async def slow(seconds: float) -> None:
    mark("began")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not _effects.exists("go"):  # noqa: ASYNC110 - it is another process that lets go
        await asyncio.sleep(0.05)
    mark("ended")


async def blocks(seconds: float) -> None:
    mark("began")
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    mark("ended")


def fails() -> None:
    mark("failing")
    raise ValueError("no such customer")


async def fails_long() -> None:
    raise ValueError("é" * 5000)


def mends() -> None:
    if current_slot().attempt == 1:
        fails()
    mark("ran")


async def main() -> None:
    systems = WorkerSystems(APP["store_url"], APP["namespace"], Events(), replicas_to_ack=APP["replicas_to_ack"])
    for task in (quick, tells, slow, blocks, fails, fails_long, mends):
        systems.in_process.add(task.__name__, task)
    systems.take_in(systems.in_process)
    await systems.start()
    serving = asyncio.create_task(_serve(systems))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    await asyncio.wait([serving])
    await systems.stop(3.5)


async def _serve(systems: WorkerSystems) -> None:
    client: Any = redis.asyncio.Redis.from_url(APP["effects_url"])
    inbox = f"inprocess:{os.getpid()}"
    async with client:
        while True:
            _, messages = await client.blpop([inbox])
            answers = await systems.in_process.enqueue(pickle.loads(messages))
            await client.rpush(f"{inbox}:answers", pickle.dumps(list(answers)))


if __name__ == "__main__":
    asyncio.run(main())
