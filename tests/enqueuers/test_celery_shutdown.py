"""Celery workers that stop or vanish, per broker and ack mode."""

from __future__ import annotations

import asyncio

import pytest

from tests.enqueuers.bench import SHORT, Bench
from tests.enqueuers.celery_system import CelerySystem
from tests.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.timeout(150)]


async def test_a_warm_shutdown_finishes_what_runs_and_gives_back_what_waits(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    leaving = await celery_system.start()
    running = await celery_bench.fire("slow", kwargs={"seconds": 100}, on_crash="skip")
    await celery_bench.wait_for_effect(running, "began")
    waiting = await celery_bench.fire("quick", on_crash="skip")
    await eventually(lambda: f"{waiting}] received" in leaving.text())
    leaving.terminate()
    await eventually(lambda: "Warm shutdown" in leaving.text())
    await celery_bench.let_go()
    await celery_bench.wait_for(running, "done")
    await leaving.ended()
    assert await celery_bench.redis.hlen("ran:workers") == 0
    assert await celery_bench.state(waiting) == "queued"
    await celery_system.start()
    await celery_bench.wait_for(waiting, "done")
    assert await celery_bench.effects(waiting) == ["ran"]


@pytest.mark.parametrize("acks_late", [False, True])
async def test_a_cold_shutdown_is_a_crash_that_the_sweep_repairs(
    celery_system: CelerySystem, celery_bench: Bench, acks_late: bool
) -> None:
    leaving = await celery_system.start(task_acks_late=acks_late)
    key = await celery_bench.fire("slow", kwargs={"seconds": 100}, lease=SHORT)
    await celery_bench.wait_for_effect(key, "began")
    leaving.stop_cold()
    await leaving.ended()
    assert await celery_bench.state(key) == "running"
    await celery_system.start(task_acks_late=acks_late)
    await celery_bench.wait_for_effect(key, "began", "began", sweeping=True, within=60)
    await celery_bench.let_go()
    record = await celery_bench.wait_for(key, "done")
    assert record["spent"] == "1"
    assert await celery_bench.effects(key) == ["began", "began", "ended"]


async def test_a_cold_shutdown_loses_what_must_not_be_repeated(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    leaving = await celery_system.start(task_acks_late=True)
    key = await celery_bench.fire("slow", kwargs={"seconds": 100}, on_crash="skip", lease=SHORT)
    await celery_bench.wait_for_effect(key, "began")
    leaving.stop_cold()
    await leaving.ended()
    await celery_system.start(task_acks_late=True)
    await celery_bench.wait_for(key, "lost", sweeping=True)
    assert await celery_bench.effects(key) == ["began"]


async def test_a_killed_worker_that_acks_late_costs_a_lease_and_a_sweep(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    victim = await celery_system.start(task_acks_late=True)
    key = await celery_bench.fire("slow", kwargs={"seconds": 100}, lease=SHORT)
    await celery_bench.wait_for_effect(key, "began")
    victim.kill()
    await celery_system.start(task_acks_late=True)
    await celery_bench.wait_for_effect(key, "began", "began", sweeping=True)
    await celery_bench.let_go()
    record = await celery_bench.wait_for(key, "done")
    assert record["spent"] == "1"
    assert await celery_bench.effects(key) == ["began", "began", "ended"]


async def test_a_message_in_the_hand_of_a_killed_worker_runs_once(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    victim = await celery_system.start()
    running = await celery_bench.fire("slow", kwargs={"seconds": 100}, on_crash="skip")
    await celery_bench.wait_for_effect(running, "began")
    waiting = await celery_bench.fire("quick")
    await eventually(lambda: f"{waiting}] received" in victim.text())
    victim.kill()
    heir = await celery_system.start()
    if celery_system.is_redis:  # which has the message back after its visibility timeout, long after `requeue_after`
        assert await celery_bench.state(waiting) == "queued"
        await celery_bench.let_deadline_pass(waiting)
        await celery_bench.wait_for(waiting, "done", sweeping=True)
        await asyncio.to_thread(celery_system.restore_unacknowledged, 0)
        await eventually(lambda: f"{waiting}: message dropped" in heir.text())
    await celery_bench.wait_for(waiting, "done")
    assert await celery_bench.effects(waiting) == ["ran"]
