"""What the guard costs a Celery worker: round trips for a slot, and time for a task that is none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from celery import Celery
from celery.app.task import Context

from benchmarks.counters import counters
from benchmarks.report import Figure
from slotqueue.enqueuers.celery import guard_app
from tests.enqueuers.bench import bench_for
from tests.enqueuers.celery_system import CelerySystem
from tests.servers import Server

SLOTS = 50
_CALLS = 1000


def run() -> Iterator[Figure]:
    """Scripts that the coordinating Redis is sent by a guarded worker, and what a plain task pays."""
    with Server() as store, Server() as broker, TemporaryDirectory() as folder:
        trips = asyncio.run(_round_trips(store, broker, Path(folder)))
    yield Figure("guard of a Celery task: round trips a slot", trips, "", 2)
    yield Figure("guard of a Celery task: a message that is no slot pays", _plain_seconds() * 1e6, "us", 10)


async def _round_trips(store: Server, broker: Server, folder: Path) -> float:
    system = CelerySystem(broker.url, broker.url, store.url, folder)
    try:
        await system.start()
        async with bench_for(system) as bench:
            await bench.wait_for(await bench.fire("quick", lease=60), "done")  # the scripts are known from here on
            messages = [await bench.claim("quick", lease=60) for _ in range(SLOTS)]
            before = counters(store.port)
            await bench.enqueuer.enqueue(messages)
            for message in messages:
                await bench.wait_for(message.slip.key, "done")
            ran = counters(store.port).since(before).scripts
            return round(ran / SLOTS, 1)  # a sign of life of the worker may come between
    finally:
        system.close()


def _plain_seconds() -> float:
    app = Celery("plain", broker="memory://", set_as_current=False)
    task = app.task(name="plain")(_plain)
    bare = _best_of(task.run)
    guard_app(app, namespace="ran", open_guard=_never).guard_tasks()
    task.request_stack.push(Context({"id": "1", "task": "plain", "headers": {}}, called_directly=False))
    return _best_of(task.run) - bare


def _plain() -> None:
    pass


def _never(_: Any) -> Any:  # noqa: ANN401 - no slot, no guard
    raise AssertionError


def _best_of(function: Callable[[], object]) -> float:
    """Seconds a call, undisturbed."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(_CALLS):
            function()
        times.append((time.perf_counter() - began) / _CALLS)
    return min(times)
