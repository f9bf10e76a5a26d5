"""Which tasks are guarded, in which pools, and what the guard costs."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import celery
import pytest

from slotqueue.app import SlotQueue
from slotqueue.enqueuers.celery import CeleryEnqueuer, guard_app
from tests.enqueuers.bench import Bench, bench_for
from tests.enqueuers.celery_system import CelerySystem
from tests.servers import Server
from tests.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.timeout(150)]


@pytest.mark.parametrize("finalize_first", [False, True])
async def test_every_kind_of_task_is_guarded(
    celery_redis: CelerySystem, celery_redis_bench: Bench, finalize_first: bool
) -> None:
    await celery_redis.start(environment={"finalize_first": finalize_first})
    expected: dict[str, tuple[dict[str, Any], list[str]]] = {
        "plain": ({}, ["ran"]),
        "strange": ({}, ["called", "ran"]),
        "polite": ({}, ["called", "ran"]),
        "whole": ({}, ["ran"]),
        "classy": ({"kind": "short"}, ["ran short"]),
        "shared": ({}, ["ran"]),
    }
    for task, (kwargs, effects) in expected.items():
        message = await celery_redis_bench.claim(task, kwargs=kwargs)
        for _ in range(2):
            await celery_redis_bench.enqueuer.enqueue([message])
        await celery_redis_bench.wait_for(message.slip.key, "done")
        await celery_redis_bench.wait_for(await celery_redis_bench.fire("quick"), "done")
        assert await celery_redis_bench.effects(message.slip.key) == effects, task


@pytest.mark.parametrize("pool", ["threads", "solo"])
async def test_slots_run_in_other_pools_as_well(
    celery_redis: CelerySystem, celery_redis_bench: Bench, pool: str
) -> None:
    worker = await celery_redis.start(pool=pool, concurrency=2 if pool == "threads" else 1)
    twice = await celery_redis_bench.claim("quick")
    await celery_redis_bench.enqueuer.enqueue([twice])
    await eventually(lambda: celery_redis.result(twice.slip.key)["status"] == "SUCCESS")
    result = repr(celery_redis.result(twice.slip.key))
    await celery_redis_bench.enqueuer.enqueue([twice])
    told = await celery_redis_bench.fire("tells")
    failed = await celery_redis_bench.fire("fails")
    retried = await celery_redis_bench.fire("retries", kwargs={"times": 1, "delay": 0.1})
    blocked = await celery_redis_bench.fire("blocks", kwargs={"seconds": 3.5}, lease=3)
    await celery_redis_bench.wait_for(told, "done")
    await celery_redis_bench.wait_for(failed, "dead")
    await celery_redis_bench.wait_for(retried, "done", sweeping=True)
    record = await celery_redis_bench.wait_for(blocked, "done", sweeping=True)
    assert record.get("spent", "0") == "0"
    assert await celery_redis_bench.effects(blocked) == ["began", "ended"]
    assert "message dropped" in worker.text()
    assert repr(celery_redis.result(twice.slip.key)) == result
    assert await celery_redis_bench.effects(twice.slip.key) == ["ran"]


async def test_the_fire_time_and_no_inner_header_are_seen_by_the_task(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    await celery_redis.start()
    key = await celery_redis_bench.fire("tells")
    await celery_redis_bench.wait_for(key, "done")
    told = json.loads((await celery_redis_bench.effects(key))[0])
    assert told["headers"]["slotqueue_fire_time"] == told["fire_time"]
    assert not {"slotqueue_token", "slotqueue_back"} & told["headers"].keys()


async def test_a_slot_costs_two_round_trips(redis_url: str, own_server: Server, tmp_path: Any) -> None:
    system = CelerySystem(redis_url, redis_url, own_server.url, tmp_path)
    try:
        async with bench_for(system) as bench:
            await system.start()
            await bench.wait_for(await bench.fire("quick"), "done")
            messages = [await bench.claim("quick") for _ in range(10)]
            own_server.ask("CONFIG RESETSTAT")
            await bench.enqueuer.enqueue(messages)
            for message in messages:
                await eventually(partial(system.has_succeeded, message.slip.key))
            calls = own_server.ask("INFO commandstats")
        names = [line.partition(":")[0] for line in calls.splitlines() if line.startswith("cmdstat_")]
        (scripts,) = [line for line in calls.splitlines() if line.startswith("cmdstat_evalsha:")]
        count = int(scripts.partition("calls=")[2].partition(",")[0])
        assert 20 <= count <= 21, "two each, and perhaps a sign of life of the worker"
        assert "cmdstat_script|load" not in names
    finally:
        system.close()


@pytest.mark.alone
def test_a_task_that_is_no_slot_pays_less_than_ten_microseconds() -> None:
    app = celery.Celery("tests", broker="memory://", set_as_current=False)

    @app.task(name="plain")  # type: ignore[untyped-decorator,unused-ignore]
    def plain() -> None:
        pass

    task = app.tasks["plain"]
    bare = best_of(task.run)
    guard_app(app, namespace="ran", open_guard=lambda _: pytest.fail("no slot, no guard")).guard_tasks()
    task.request_stack.push(celery.app.task.Context({"id": "1", "task": "plain", "headers": {}}, called_directly=False))
    assert best_of(task.run) - bare < 10e-6


def best_of(function: Any) -> float:
    """Seconds a call, undisturbed."""
    times = []
    for _ in range(20):
        before = time.perf_counter()
        for _ in range(1000):
            function()
        times.append((time.perf_counter() - before) / 1000)
    return min(times)


def test_two_namespaces_guard_one_application_and_again_is_harmless() -> None:
    app = celery.Celery("tests", broker="memory://", set_as_current=False)
    for namespace in ("one", "two", "two"):
        SlotQueue("redis://localhost:1/0", namespace=namespace, enqueuer=CeleryEnqueuer(app))
    guard = guard_app(app, namespace="one", open_guard=lambda _: pytest.fail("not opened"))
    assert sorted(guard.connections) == ["one", "two"]
    guard.guard_tasks()
    runs = {name: task.run for name, task in app.tasks.items()}
    guard.guard_tasks()
    assert runs == {name: task.run for name, task in app.tasks.items()}
