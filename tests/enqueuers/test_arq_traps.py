"""What is arq's own: its results, counters, keys and time-outs, each of which can lose or repeat a slot."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from arq.connections import RedisSettings, create_pool
from arq.jobs import Job, deserialize_result

from slotqueue.answers import Word
from tests.enqueuers.arq_system import ArqSystem
from tests.enqueuers.bench import SHORT, Bench, bench_for
from tests.servers import Server
from tests.waiting import eventually

pytestmark = pytest.mark.processes


async def leftovers(bench: Bench, key: str) -> list[str]:
    """Which of arq's keys still speak of this message."""
    names = [f"arq:{word}:{key}" for word in ("job", "retry", "in-progress")]
    found = [name for name in names if await bench.redis.exists(name)]
    if await bench.redis.zscore("arq:queue", key) is not None:
        found.append("arq:queue")
    return found


async def is_tidy(bench: Bench, key: str) -> None:
    async def is_empty() -> bool:
        return not await leftovers(bench, key)

    await eventually(is_empty)


async def is_put_off(bench: Bench, key: str, seconds: float) -> None:
    """Wait until arq has deferred the message, which it does a moment after the task has ended: by adding to its score.

    A copy sent before would be deferred with it.
    """
    before = await bench.redis.time()

    async def waits_in_arq() -> bool:
        score = await bench.redis.zscore("arq:queue", key)
        return score is not None and score / 1000 - before[0] > seconds - 100

    await eventually(waits_in_arq, why="arq defers it")


@pytest.fixture
async def guarded_slow(arq_bench: Bench) -> None:
    """Let the tasks count as guarded although no worker has started yet."""
    await arq_bench.redis.zadd("ran:tasks", {f"arq:{task}": 10**14 for task in ("slow", "quick", "tells")})


async def test_a_slot_costs_two_round_trips(redis_url: str, own_server: Server, tmp_path: Path) -> None:
    system = ArqSystem(redis_url, own_server.url, tmp_path)
    try:
        await system.start()
        async with bench_for(system) as bench:
            await bench.wait_for(await bench.fire("quick"), "done")
            messages = [await bench.claim("quick") for _ in range(10)]
            own_server.ask("CONFIG RESETSTAT")
            await bench.enqueuer.enqueue(messages)
            for message in messages:
                await bench.wait_for(message.slip.key, "done")
            calls = own_server.ask("INFO commandstats").partition("cmdstat_evalsha:calls=")[2].partition(",")[0]
            assert 20 <= int(calls) <= 21, "two each, and perhaps a sign of life of the worker"
    finally:
        system.close()


# ---- results


@pytest.mark.parametrize("keeping", [{}, {"keep_result": 0}, {"keep_result_forever": True}], ids=str)
async def test_a_kept_result_does_not_stop_another_attempt(
    arq: ArqSystem, arq_bench: Bench, keeping: dict[str, Any]
) -> None:
    await arq.start(functions={"mends": keeping})
    key = await arq_bench.fire("mends", on_failure="again")
    await arq_bench.wait_for(key, "failed")
    await is_tidy(arq_bench, key)
    await arq_bench.let_deadline_pass(key)
    await arq_bench.wait_for(key, "done", sweeping=True)
    assert await arq_bench.effects(key) == ["failing", "ran"]


async def test_what_a_function_returns_is_its_result_in_arq(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start()
    key = await arq_bench.fire("quick")
    await is_tidy(arq_bench, key)
    pool = await create_pool(RedisSettings.from_dsn(arq.broker_url))
    result = await pool.get(f"arq:result:{key}")
    await pool.aclose(close_connection_pool=True)
    assert result is not None
    assert deserialize_result(result).result == "quickly"


async def test_a_function_gets_the_context_that_arq_made(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start()
    key = await arq_bench.fire("tells")
    await arq_bench.wait_for(key, "done")
    assert '"ctx": ["enqueue_time", "job_id", "job_try", "redis", "score"]' in (await arq_bench.effects(key))[0]


# ---- tries


async def test_retry_on_the_last_try_is_a_final_failure(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start(functions={"retries": {"max_tries": 2}})
    key = await arq_bench.fire("retries", kwargs={"times": 5})
    record = await arq_bench.wait_for(key, "dead")
    assert "retries exhausted" in record["error"]
    assert await arq_bench.effects(key) == ["retrying", "retrying"]


async def test_after_the_last_try_another_attempt_has_all_tries_again(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start(functions={"retries": {"max_tries": 1}})
    key = await arq_bench.fire("retries", kwargs={"times": 9, "delay": 600}, on_failure="again")
    await arq_bench.wait_for(key, "failed")
    await is_put_off(arq_bench, key, 600)
    await arq_bench.let_deadline_pass(key)
    await arq_bench.sweep()
    await arq_bench.wait_for_effect(key, "retrying", "retrying")
    assert [mark["try"] for mark in await arq_bench.marks(key)] == [1, 1]


async def test_a_postponed_slot_waits_for_the_time_of_its_retry(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start()
    key = await arq_bench.fire("retries", kwargs={"times": 1, "delay": 900})
    record = await arq_bench.wait_for(key, "postponed")
    waits = await arq_bench.redis.zscore("ran:open", key) - int(record["began"])
    assert 900_000 + 300_000 <= waits < 900_000 + 315_000
    await is_put_off(arq_bench, key, 900)


async def test_a_function_that_cancels_itself_is_given_up_after_its_tries(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start(max_tries=2)
    key = await arq_bench.fire("cancels_itself")
    await arq_bench.wait_for(key, "dead")
    assert await arq_bench.effects(key) == ["cancelling", "cancelling"]


async def test_without_retries_in_arq_a_stop_is_final(arq: ArqSystem, arq_bench: Bench) -> None:
    worker = await arq.start(retry_jobs=False)
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    await arq_bench.wait_for_effect(key, "began")
    worker.terminate()
    record = await arq_bench.wait_for(key, "dead")
    assert "retry_jobs=False" in record["error"]


async def test_a_worker_that_waits_for_its_jobs_on_a_stop_finishes_them(arq: ArqSystem, arq_bench: Bench) -> None:
    worker = await arq.start(job_completion_wait=10)
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    await arq_bench.wait_for_effect(key, "began")
    worker.terminate()
    await eventually(lambda: "shutdown on SIGTERM" in worker.text())
    await arq_bench.let_go()
    await worker.ended()
    assert await arq_bench.state(key) == "done"


# ---- time-outs and aborts


async def test_a_time_out_is_a_failure_and_no_hand_back(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start(functions={"slow": {"timeout": 2}})
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    record = await arq_bench.wait_for(key, "dead")
    assert record["error"].startswith("TimeoutError")
    await is_tidy(arq_bench, key)
    assert await arq_bench.effects(key) == ["began"]


async def test_a_job_that_blocks_past_its_time_and_succeeds_is_done(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start(functions={"blocks": {"timeout": 2}})
    key = await arq_bench.fire("blocks", kwargs={"seconds": 3})
    await arq_bench.wait_for(key, "done")
    await is_tidy(arq_bench, key)
    assert await arq_bench.effects(key) == ["began", "ended"]


@pytest.mark.parametrize("keep_result", [3600, 0])
async def test_a_run_that_an_operator_aborts_is_dead(arq: ArqSystem, arq_bench: Bench, keep_result: int) -> None:
    await arq.start(allow_abort_jobs=True, keep_result=keep_result)
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    await arq_bench.wait_for_effect(key, "began")
    await _abort(arq, key)
    record = await arq_bench.wait_for(key, "dead")
    assert "aborted" in record["error"]
    await is_tidy(arq_bench, key)


@pytest.mark.usefixtures("guarded_slow")
async def test_a_message_that_is_aborted_before_its_run_is_dead(arq: ArqSystem, arq_bench: Bench) -> None:
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    await arq_bench.redis.zadd("arq:abort", {key: 1})
    await arq.start(allow_abort_jobs=True)
    record = await arq_bench.wait_for(key, "dead", sweeping=True)
    assert "aborted" in record["error"]
    assert await arq_bench.effects(key) == []


async def _abort(arq: ArqSystem, key: str) -> None:
    pool = await create_pool(RedisSettings.from_dsn(arq.broker_url))
    await Job(key, pool).abort(timeout=30, poll_delay=0.1)
    await pool.aclose(close_connection_pool=True)


# ---- keys


@pytest.mark.usefixtures("guarded_slow")
async def test_a_payload_that_no_worker_can_read_is_dead(arq: ArqSystem, arq_bench: Bench) -> None:
    key = await arq_bench.fire("quick")
    await arq_bench.redis.set(f"arq:job:{key}", "rubbish", keepttl=True)
    await arq.start()
    record = await arq_bench.wait_for(key, "dead", sweeping=True)
    assert "unable to deserialize job" in record["error"]


@pytest.mark.usefixtures("guarded_slow")
async def test_a_message_that_left_the_queue_alone_is_put_back(arq: ArqSystem, arq_bench: Bench) -> None:
    key = await arq_bench.fire("quick")
    await arq_bench.redis.zrem("arq:queue", key)
    await arq.start()
    await arq_bench.let_deadline_pass(key)
    await arq_bench.wait_for(key, "done", sweeping=True)


async def test_a_killed_worker_costs_a_lease_and_a_sweep_and_not_five_minutes(arq: ArqSystem, arq_bench: Bench) -> None:
    await arq.start(job_timeout=300, max_tries=1)
    await arq.start(job_timeout=300, max_tries=1)
    key = await arq_bench.fire("slow", kwargs={"seconds": 100}, lease=SHORT)
    await arq_bench.wait_for_effect(key, "began")
    _kill(arq, (await arq_bench.marks(key))[0]["pid"])
    assert await arq_bench.redis.pttl(f"arq:in-progress:{key}") > 200_000
    taken = await eventually(arq_bench.sweep)
    assert taken[0].word is Word.ENQUEUE
    await arq_bench.wait_for_effect(key, "began", "began")
    await arq_bench.let_go()
    await arq_bench.wait_for(key, "done")
    assert [mark["try"] for mark in await arq_bench.marks(key)] == [1, 1, 1]


def _kill(arq: ArqSystem, pid: int) -> None:
    next(worker for worker in arq._workers if worker.pid == pid).kill()


async def test_a_second_delivery_of_a_running_slot_leaves_everything_as_it_is(arq: ArqSystem, arq_bench: Bench) -> None:
    workers = [await arq.start(), await arq.start()]
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    await arq_bench.wait_for_effect(key, "began")
    await arq_bench.redis.delete(f"arq:in-progress:{key}")  # as when code blocks longer than that key lives
    await eventually(lambda: any("the slot is being run" in worker.text() for worker in workers))
    assert "arq:queue" in await leftovers(arq_bench, key)
    await arq_bench.let_go()
    await arq_bench.wait_for(key, "done")
    await is_tidy(arq_bench, key)
    assert await arq_bench.effects(key) == ["began", "ended"]


@pytest.mark.parametrize("tries, sign", [(5, "the slot is being run"), (1, "max retries 1 exceeded")])
async def test_after_a_second_delivery_a_killed_workers_slot_is_still_completed(
    arq: ArqSystem, arq_bench: Bench, tries: int, sign: str
) -> None:
    workers = [await arq.start(tries=tries), await arq.start(tries=tries)]
    key = await arq_bench.fire("slow", kwargs={"seconds": 100}, lease=3)
    await arq_bench.wait_for_effect(key, "began")
    await arq_bench.redis.delete(f"arq:in-progress:{key}")
    await eventually(lambda: any(sign in worker.text() for worker in workers))
    _kill(arq, (await arq_bench.marks(key))[0]["pid"])
    await arq_bench.wait_for_effect(key, "began", "began", sweeping=True)
    await arq_bench.let_go()
    await arq_bench.wait_for(key, "done")
    assert await arq_bench.effects(key) == ["began", "began", "ended"]


@pytest.mark.usefixtures("guarded_slow")
async def test_a_slip_from_the_future_is_handed_back_unrun(arq: ArqSystem, arq_bench: Bench) -> None:
    message = await arq_bench.claim("quick")
    await arq_bench.enqueuer.enqueue([message])
    pool = await create_pool(RedisSettings.from_dsn(arq.broker_url))
    payload = pickle.loads(await pool.get(f"arq:job:{message.slip.key}") or b"")
    payload["slot"] = '["a newer form"]'
    await pool.set(f"arq:job:{message.slip.key}", pickle.dumps(payload))
    await pool.aclose(close_connection_pool=True)
    worker = await arq.start()
    await eventually(lambda: "handed back unrun" in worker.text())
    assert await arq_bench.effects(message.slip.key) == []


async def test_a_worker_killed_between_hand_back_and_its_try_spends_no_attempt(
    arq: ArqSystem, arq_bench: Bench
) -> None:
    worker = await arq.start(max_tries=1)
    key = await arq_bench.fire("slow", kwargs={"seconds": 100})
    await arq_bench.wait_for_effect(key, "began")
    worker.terminate()
    await arq_bench.wait_for(key, "postponed")
    await worker.ended()
    await arq_bench.redis.set(f"arq:retry:{key}", 1)  # as if it had been killed before it took the try back
    await arq.start(max_tries=1)
    await is_tidy(arq_bench, key)  # arq: max 1 retries exceeded
    await arq_bench.look_up()
    assert await arq_bench.state(key) == "postponed"
    await arq_bench.let_deadline_pass(key)
    await arq_bench.sweep()
    await arq_bench.wait_for_effect(key, "began", "began")
