"""How each end of a Celery task ends its slot: one test a row of the table in docs/celery.md, with real workers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from tests.enqueuers.bench import Bench
from tests.enqueuers.celery_system import CelerySystem
from tests.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.timeout(150)]


# ---- ends that the task's own process reports


async def test_the_countdown_of_a_retry_is_the_deadline(celery_redis: CelerySystem, celery_redis_bench: Bench) -> None:
    await celery_redis.start()
    key = await celery_redis_bench.fire("retries", kwargs={"times": 1, "delay": 30})
    record = await celery_redis_bench.wait_for(key, "postponed")
    waits = int(record["waits"]) - int(record["began"])
    assert 29_000 < waits < 45_000, "30 s from when the task said so"


async def test_a_retry_carries_the_fence_of_the_run_that_sent_it(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    await celery_redis.start()
    key = await celery_redis_bench.fire("retries", kwargs={"times": 3, "delay": 0}, on_crash="skip")
    record = await celery_redis_bench.wait_for(key, "done")
    assert record.get("spent", "0") == "0"
    assert [each["try"] for each in await celery_redis_bench.marks(key)] == [1, 2, 3, 4]


@pytest.mark.parametrize("times,state", [(1, "done"), (99, "dead")])
async def test_automatic_retries_are_postponed_and_their_last_is_final(
    celery_redis: CelerySystem, celery_redis_bench: Bench, times: int, state: str
) -> None:
    await celery_redis.start()
    key = await celery_redis_bench.fire("retries_itself", kwargs={"times": times})
    record = await celery_redis_bench.wait_for(key, state)
    assert record.get("spent", "0") == ("0" if state == "done" else "1")
    assert record.get("error", "") == ("" if state == "done" else "ValueError: not yet")
    assert len(await celery_redis_bench.effects(key)) == (2 if state == "done" else 3)


async def test_a_retry_that_is_sent_and_not_thrown_is_not_lost(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    await celery_redis.start()
    keys = [
        await celery_redis_bench.fire("retries_quietly", kwargs={"fails": fails}, on_crash="skip")
        for fails in (False, True)
    ]
    for key in keys:
        await celery_redis_bench.wait_for_effect(key, "retrying", "ran")
        record = await celery_redis_bench.wait_for(key, "done")
        assert record.get("spent", "0") == "0"


async def test_a_manual_retry_whose_tries_are_spent_is_final(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    await celery_redis.start()
    for with_error, said in ((True, "ValueError: no such customer"), (False, "MaxRetriesExceededError: Can't retry")):
        key = await celery_redis_bench.fire("gives_up", kwargs={"with_error": with_error})
        record = await celery_redis_bench.wait_for(key, "dead")
        assert record["error"].startswith(said)
        assert record["spent"] == "1"
        assert await celery_redis_bench.effects(key) == ["trying", "trying"]


async def test_a_task_that_goes_on_in_the_place_of_another_ends_its_slot_and_what_else_comes_there_is_no_slot(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    """A limit that docs/celery.md names: nobody reports on a chain, and the slot is done before that has run."""
    worker = await celery_redis.start()
    for by, ended, effect in (("task", "done", "ran"), ("failure", "dead", "failing")):
        key = await celery_redis_bench.fire("replaces", kwargs={"by": by}, on_crash="skip")
        record = await celery_redis_bench.wait_for(key, ended)
        assert record.get("spent", "0") == ("1" if ended == "dead" else "0")
        assert await celery_redis_bench.effects(key) == ["replacing", effect]
        await worker.says(f"{key} postponed by 500 ms: another task goes on in its place")
    strangers = [
        await celery_redis_bench.fire("replaces", kwargs={"by": "elsewhere"}),
        chained := await celery_redis_bench.fire("replaces", kwargs={"by": "chain"}),
    ]
    for key in strangers:
        await celery_redis_bench.wait_for(key, "done")
        assert await celery_redis_bench.effects(key) == ["replacing"]
        assert f"{key} postponed" not in worker.text()
    await celery_redis_bench.wait_for_effect(chained, "replacing", "ran")
    await eventually(lambda: celery_redis.result(chained)["result"] == "quickly")


async def test_a_soft_time_limit_is_a_failure(celery_redis: CelerySystem, celery_redis_bench: Bench) -> None:
    await celery_redis.start(task_soft_time_limit=2)
    record = await celery_redis_bench.wait_for(await celery_redis_bench.fire("slow", kwargs={"seconds": 20}), "dead")
    assert "SoftTimeLimitExceeded" in record["error"]


async def test_a_task_that_ignores_itself_is_done(celery_redis: CelerySystem, celery_redis_bench: Bench) -> None:
    await celery_redis.start()
    await celery_redis_bench.wait_for(await celery_redis_bench.fire("ignores"), "done")


async def test_a_rejected_message_is_a_failure_unless_the_broker_has_it_again(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    await celery_system.start(task_acks_late=True)
    final = await celery_bench.fire("rejects", kwargs={"requeue": False})
    again = await celery_bench.fire("rejects", kwargs={"requeue": True}, on_crash="skip")
    await celery_bench.wait_for(final, "dead")
    record = await celery_bench.wait_for(again, "done")
    assert record.get("spent", "0") == "0"
    assert await celery_bench.effects(again) == ["ran", "ran"]


# ---- ends that only the parent process sees


async def test_a_hard_time_limit_is_a_failure(celery_system: CelerySystem, celery_bench: Bench) -> None:
    await celery_system.start(task_time_limit=2)
    record = await celery_bench.wait_for(await celery_bench.fire("slow", kwargs={"seconds": 20}, lease=60), "dead")
    assert record["error"].startswith("TimeLimitExceeded")
    assert record["spent"] == "1"


async def test_a_killed_pool_process_is_a_failure(celery_system: CelerySystem, celery_bench: Bench) -> None:
    await celery_system.start()
    key = await celery_bench.fire("dies", lease=60)
    record = await celery_bench.wait_for(key, "dead")
    assert record["error"].startswith("WorkerLostError")
    assert await celery_bench.effects(key) == ["began"]


async def test_a_killed_pool_process_whose_message_returns_spends_an_attempt_when_its_lease_passes(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    await celery_system.start(task_acks_late=True, task_reject_on_worker_lost=True)
    key = await celery_bench.fire("dies", max_attempts=2, lease=1)
    record = await celery_bench.wait_for(key, "dead", sweeping=True)
    assert record["spent"] == "2"
    assert await celery_bench.effects(key) == ["began", "began"]


async def test_a_revoked_message_is_rejected(celery_system: CelerySystem, celery_bench: Bench) -> None:
    worker = await celery_system.start()
    first = await celery_bench.fire("slow", kwargs={"seconds": 100})
    await celery_bench.wait_for_effect(first, "began")
    key = await celery_bench.fire("quick")
    await asyncio.to_thread(celery_system.app.control.revoke, key)
    await eventually(lambda: "flagged as revoked" in worker.text())
    await celery_bench.let_go()
    record = await celery_bench.wait_for(key, "dead")
    assert record["error"] == "revoked in Celery"
    assert await celery_bench.effects(key) == []


async def test_a_terminated_run_is_a_failure(celery_redis: CelerySystem, celery_redis_bench: Bench) -> None:
    await celery_redis.start()
    key = await celery_redis_bench.fire("slow", kwargs={"seconds": 100}, lease=60)
    await celery_redis_bench.wait_for_effect(key, "began")
    await asyncio.to_thread(celery_redis.app.control.revoke, key, terminate=True)
    record = await celery_redis_bench.wait_for(key, "dead")
    assert record["error"] == "terminated in Celery"


async def test_a_message_that_expires_at_the_worker_is_rejected(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    worker = await celery_system.start()
    busy = await celery_bench.fire("slow", kwargs={"seconds": 100})
    await celery_bench.wait_for_effect(busy, "began")
    key = await send_expiring(celery_bench)
    await eventually(lambda: f"{key}] received" in worker.text())
    await asyncio.sleep(LIFE)
    await celery_bench.let_go()
    record = await celery_bench.wait_for(key, "dead")
    assert "expired" in record["error"]
    assert await celery_bench.effects(key) == []


async def test_a_message_that_expires_in_a_rabbitmq_queue_is_missed_by_nobody_but_the_sweep(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    if celery_system.is_redis:
        pytest.skip("Redis expires nothing by itself")
    await celery_bench.redis.zadd("ran:tasks", {"celery:quick": 10**14})
    key = await send_expiring(celery_bench)
    await asyncio.sleep(LIFE + 0.5)
    await celery_system.start()
    other = await celery_bench.fire("quick")
    await celery_bench.wait_for(other, "done")
    assert await celery_bench.state(key) == "queued"
    await celery_bench.let_deadline_pass(key)
    assert len(await celery_bench.sweep()) == 1


LIFE = 2.5
"""Seconds for which a message lives that expires."""


async def send_expiring(bench: Bench) -> str:
    """Enqueue a slot whose message lives for `LIFE`."""
    message = await bench.claim("quick")
    about_now = (time.time() * 1000 - message.slip.fire) / 1000
    await bench.enqueuer.enqueue([replace(message, options={"expires": about_now + LIFE})])
    await bench.store.run(bench.store.verbs.confirm([message.slip]))
    return message.slip.key


# ---- messages that come twice


@pytest.mark.parametrize("task,ended,stored", [("quick", "done", "SUCCESS"), ("fails", "dead", "FAILURE")])
async def test_a_duplicate_leaves_the_result_as_it_was(
    celery_redis: CelerySystem, celery_redis_bench: Bench, task: str, ended: str, stored: str
) -> None:
    worker = await celery_redis.start(task_track_started=True)
    message = await celery_redis_bench.claim(task)
    key = message.slip.key
    await celery_redis_bench.enqueuer.enqueue([message])
    await celery_redis_bench.wait_for(key, ended)
    await eventually(lambda: celery_redis.result(key)["status"] == stored)
    before = repr(celery_redis.result(key))
    await celery_redis_bench.enqueuer.enqueue([message])
    await eventually(lambda: "message dropped" in worker.text())
    await celery_redis_bench.wait_for(await celery_redis_bench.fire("quick"), "done")  # the duplicate is long over
    assert repr(celery_redis.result(key)) == before
    assert len(await celery_redis_bench.effects(key)) == 1


async def test_the_state_started_is_stored_where_it_is_asked_for(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    await celery_redis.start(task_track_started=True, concurrency=2)
    key = await celery_redis_bench.fire("slow", kwargs={"seconds": 100})
    await celery_redis.send_plainly("slow", "plain", seconds=100)
    await eventually(lambda: celery_redis.result(key)["status"] == celery_redis.result("plain")["status"] == "STARTED")
    await celery_redis_bench.let_go()
    await celery_redis_bench.wait_for(key, "done")


async def test_a_visibility_timeout_shorter_than_the_job_repeats_nothing(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    options = {"visibility_timeout": 1}
    starts = [celery_redis.start(task_acks_late=True, broker_transport_options=options) for _ in range(2)]
    workers = await asyncio.gather(*starts)
    key = await celery_redis_bench.fire("slow", kwargs={"seconds": 100}, on_crash="skip")
    await celery_redis_bench.wait_for_effect(key, "began")
    await asyncio.sleep(1.5)  # past the visibility timeout
    await asyncio.to_thread(celery_redis.restore_unacknowledged, 1)
    await eventually(lambda: any("is being run" in worker.text() for worker in workers))
    await celery_redis_bench.let_go()
    await celery_redis_bench.wait_for(key, "done", sweeping=True)
    assert await celery_redis_bench.effects(key) == ["began", "ended"]


async def test_what_waits_for_workers_that_are_away_runs_once(celery_system: CelerySystem, celery_bench: Bench) -> None:
    await celery_bench.redis.zadd("ran:tasks", {"celery:quick": to_ms_now()})
    key = await celery_bench.fire("quick")
    for _ in range(20):
        assert await celery_bench.sweep() == []
    await celery_system.start()
    await celery_bench.wait_for(key, "done")
    assert await celery_bench.effects(key) == ["ran"]


def to_ms_now() -> int:
    return int(time.time() * 1000)
