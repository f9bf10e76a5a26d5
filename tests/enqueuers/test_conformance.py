"""What every worker system must do with a slot, whichever it is. See `systems.System` for what it is asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from slotqueue.answers import Word
from slotqueue.messages import Accepted
from slotqueue.slots import parse_key
from tests.enqueuers.bench import PERIOD, SHORT, Bench
from tests.enqueuers.conftest import QUEUES
from tests.enqueuers.systems import System
from tests.servers import Server
from tests.waiting import eventually

pytestmark = pytest.mark.processes


# ---- a run from begin to end


async def test_a_slot_runs_once_and_is_done(system: System, bench: Bench) -> None:
    await system.start()
    key = await bench.fire("quick")
    await bench.wait_for(key, "done")
    assert await bench.is_done(key)
    assert await bench.effects(key) == ["ran"]


async def test_a_job_learns_which_slot_it_runs_for(system: System, bench: Bench) -> None:
    await system.start()
    key = await bench.fire("tells", kwargs={"kind": "short"})
    await bench.wait_for(key, "done")
    told = json.loads((await bench.effects(key))[0])
    fire_time = parse_key(key).fire_time
    assert told["key"] == key
    assert told["job"] == parse_key(key).job
    assert told["fire_time"] == told["end"] == fire_time.isoformat()
    assert told["start"] == (fire_time - PERIOD).isoformat()
    assert told["attempt"] == 1
    assert told["is_same_in_thread"]
    assert told["kwargs"] == {"kind": "short"}


async def test_a_second_message_of_a_done_slot_does_not_run(system: System, bench: Bench) -> None:
    worker = await system.start()
    message = await bench.claim("quick")
    key = message.slip.key
    await bench.enqueuer.enqueue([message])
    await bench.wait_for(key, "done")
    await eventually(lambda: bench.has_left_arq(key))
    again = replace(message, slip=replace(message.slip, n=1))
    assert isinstance((await bench.enqueuer.enqueue([again]))[0], Accepted)
    await eventually(lambda: f"{key}: message dropped" in worker.text())
    assert await bench.effects(key) == ["ran"]


@pytest.mark.parametrize("system", QUEUES, indirect=True)
async def test_messages_that_are_no_slots_are_left_alone(system: System, bench: Bench) -> None:
    await system.start()
    await system.send_plainly("tells", "some-id")
    await system.send_plainly("tells", "ran:looks-like-one:2026-10-02T03:00")
    await bench.wait_for_effect("some-id", "no slot")
    await bench.wait_for_effect("ran:looks-like-one:2026-10-02T03:00", "no slot")
    assert not await bench.redis.exists("ran:looks-like-one:2026-10-02T03:00:record")


@pytest.mark.parametrize("system", QUEUES, indirect=True)
async def test_a_worker_of_another_namespace_hands_the_message_back(system: System, bench: Bench) -> None:
    stranger = await system.start(namespace="other")
    key = await bench.fire("quick", becomes="sent")
    await eventually(lambda: "handed back unrun" in stranger.text())
    assert await bench.effects(key) == []
    assert await bench.state(key) == "sent"


@pytest.mark.parametrize("system", QUEUES, indirect=True)
async def test_a_worker_without_the_guard_runs_the_function_as_ever(system: System, bench: Bench) -> None:
    await system.start(is_guarded=False)
    key = await bench.fire("tells", becomes="sent", kwargs={"kind": "short"})
    await bench.wait_for_effect(key, "no slot")
    assert await bench.state(key) == "sent"
    assert await bench.sweep() == []


# ---- failures


async def test_a_failure_is_final_and_keeps_its_error(system: System, bench: Bench) -> None:
    await system.start()
    key = await bench.fire("fails")
    record = await bench.wait_for(key, "dead")
    assert record["error"] == "ValueError: no such customer"
    assert not await bench.is_done(key)
    assert await bench.sweep() == []
    assert await bench.effects(key) == ["failing"]


async def test_an_error_is_cut_at_one_kilobyte(system: System, bench: Bench) -> None:
    await system.start()
    record = await bench.wait_for(await bench.fire("fails_long"), "dead")
    assert 1000 < len(record["error"].encode()) <= 1024


async def test_a_failure_with_attempts_left_is_tried_again(system: System, bench: Bench) -> None:
    await system.start()
    key = await bench.fire("mends", on_failure="again")
    await bench.wait_for(key, "failed")
    assert await bench.sweep() == []
    await eventually(lambda: bench.has_left_arq(key))
    await bench.let_deadline_pass(key)
    assert [found.word for found in await bench.sweep()] == [Word.ENQUEUE]
    await bench.wait_for(key, "done")
    assert await bench.effects(key) == ["failing", "ran"]


@pytest.mark.parametrize("system", QUEUES, indirect=True)
async def test_a_task_that_no_worker_knows_ends_dead(system: System, bench: Bench) -> None:
    await system.start()
    await bench.redis.zadd("ran:tasks", {f"{system.kind}:unheard_of": 10**14})  # a worker of a later version knew it
    key = await bench.fire("unheard_of")
    record = await bench.wait_for(key, "dead", sweeping=True)
    assert "unheard_of" in record["error"]


@pytest.mark.parametrize("system", QUEUES, indirect=True)
async def test_the_retry_of_the_worker_system_spends_no_attempt(system: System, bench: Bench) -> None:
    await system.start()
    key = await bench.fire("retries", kwargs={"times": 2, "delay": 0.1}, on_crash="skip")
    record = await bench.wait_for(key, "done")
    assert record.get("spent", "0") == "0"
    assert await bench.effects(key) == ["retrying", "retrying", "ran"]


@pytest.mark.parametrize("system", QUEUES, indirect=True)
async def test_of_a_job_that_may_not_overlap_a_slot_waits_or_is_skipped_while_another_is_out(
    system: System, bench: Bench
) -> None:
    await system.start()
    forbidding = bench.job("retries", kwargs={"times": 1, "delay": 4}, overlap="forbid")
    holding = bench.job("slow", kwargs={"seconds": 0.7}, overlap="hold")
    _, retried = await bench.claim_of(forbidding, minutes_ago=1)
    _, ran = await bench.claim_of(holding, minutes_ago=1)
    word, held = await bench.claim_of(holding)
    assert word is Word.HELD
    await bench.enqueuer.enqueue([retried, ran])
    await bench.wait_for(retried.slip.key, "postponed")  # its retry is to come, and it is still out
    word, skipped = await bench.claim_of(forbidding)
    assert word is Word.SKIPPED
    before = await bench.wait_for(ran.slip.key, "done", sweeping=True)
    after = await bench.wait_for(held.slip.key, "done", sweeping=True)
    assert int(before["ended"]) <= int(after["began"])
    await bench.wait_for(retried.slip.key, "done")
    assert (await bench.record(skipped.slip.key))["behind"] == retried.slip.key
    assert await bench.effects(skipped.slip.key) == []


# ---- workers that vanish


async def test_a_killed_workers_slot_is_completed_by_another(system: System, bench: Bench) -> None:
    victim = await system.start(tries=1)
    key = await bench.fire("slow", kwargs={"seconds": 100}, lease=SHORT)
    await bench.wait_for_effect(key, "began")
    victim.kill()
    await system.start(tries=1)
    await bench.wait_for_effect(key, "began", "began", sweeping=True)
    await bench.let_go()
    record = await bench.wait_for(key, "done")
    assert record["spent"] == "1"
    assert await bench.effects(key) == ["began", "began", "ended"]


async def test_a_killed_workers_slot_is_lost_where_a_repeat_would_be_worse(system: System, bench: Bench) -> None:
    victim = await system.start()
    key = await bench.fire("slow", kwargs={"seconds": 100}, on_crash="skip", lease=SHORT)
    await bench.wait_for_effect(key, "began")
    victim.kill()
    await system.start()
    await bench.wait_for(key, "lost", sweeping=True)
    assert await bench.effects(key) == ["began"]


@pytest.mark.parametrize("on_crash", ["skip", "complete"])
async def test_a_stopped_worker_hands_its_slot_back(system: System, bench: Bench, on_crash: str) -> None:
    if not system.stops_running:
        pytest.skip(f"{system.kind} lets running tasks finish: test_celery_shutdown has what it does")
    leaving = await system.start(tries=1)
    key = await bench.fire("slow", kwargs={"seconds": 100}, on_crash=on_crash)
    await bench.wait_for_effect(key, "began")
    leaving.terminate()
    await bench.wait_for(key, "postponed")
    await leaving.ended()
    assert await bench.redis.hlen("ran:workers") == 0
    await system.start(tries=1)
    await bench.sweep()  # where the message went with its process, nobody else runs the slot again
    await bench.wait_for_effect(key, "began", "began")
    assert (await bench.record(key)).get("spent", "0") == "0"


async def test_code_that_blocks_the_worker_keeps_its_lease(system: System, bench: Bench) -> None:
    await system.start()
    key = await bench.fire("blocks", kwargs={"seconds": 3.5}, lease=3)
    await bench.wait_for_effect(key, "began")
    record = await bench.wait_for(key, "done", sweeping=True)
    assert record.get("spent", "0") == "0"
    assert await bench.effects(key) == ["began", "ended"]


async def test_a_frozen_worker_that_was_taken_over_ends_without_a_word(system: System, bench: Bench) -> None:
    frozen = await system.start()
    key = await bench.fire("slow", kwargs={"seconds": 100}, lease=SHORT)
    await bench.wait_for_effect(key, "began")
    frozen.freeze()
    taken = await eventually(bench.sweep)
    assert taken[0].word is Word.ENQUEUE
    frozen.thaw()
    await eventually(lambda: "lost the lease" in frozen.text())
    await bench.wait_for_effect(key, "began", "began", sweeping=True)
    await bench.let_go()
    record = await bench.wait_for(key, "done")
    assert record["spent"] == "1"
    assert await bench.effects(key) == ["began", "began", "ended"]


# ---- a store that goes away


@pytest.mark.slow
@pytest.mark.parametrize("system_apart", QUEUES, indirect=True)
async def test_no_slot_runs_while_the_store_is_away(
    system_apart: System, bench_apart: Bench, own_server: Server
) -> None:
    worker = await system_apart.start(tries=1)
    message = await bench_apart.claim("quick", on_crash="skip")
    own_server.pause()
    await bench_apart.enqueuer.enqueue([message])
    await eventually(lambda: "message handed back" in worker.text())
    assert await bench_apart.effects(message.slip.key) == []
    own_server.resume()
    await bench_apart.wait_for(message.slip.key, "done")
    assert await bench_apart.effects(message.slip.key) == ["ran"]


@pytest.mark.parametrize("system_apart", ["inprocess", "arq", "celery-redis"], indirect=True)
async def test_no_slot_runs_before_a_replica_of_the_store_has_its_begin(
    system_apart: System, bench_apart: Bench, own_server: Server
) -> None:
    worker = await system_apart.start(replicas_to_ack=1)
    key = await bench_apart.fire("quick", on_crash="skip")
    await eventually(lambda: "0 of 1 replicas of Redis acknowledged the begin within 1 s" in worker.text())
    await bench_apart.wait_for(key, "postponed")
    assert await bench_apart.effects(key) == []
    own_server.ask("CONFIG SET repl-diskless-sync-delay 0")
    with Server(options=["--replicaof", "127.0.0.1", str(own_server.port)]):
        await bench_apart.wait_for(key, "done", sweeping=True)
    assert await bench_apart.effects(key) == ["ran"]
    assert (await bench_apart.record(key)).get("spent", "0") == "0"


async def test_the_end_of_a_run_is_written_once_the_store_is_back(
    system_apart: System, bench_apart: Bench, own_server: Server
) -> None:
    await system_apart.start()
    key = await bench_apart.fire("slow", kwargs={"seconds": 100})
    await bench_apart.wait_for_effect(key, "began")
    own_server.pause()
    await bench_apart.let_go()
    await bench_apart.wait_for_effect(key, "began", "ended")
    await asyncio.sleep(3.5)  # past a few tries; the store is away, so there is nothing to wait for
    own_server.resume()
    await bench_apart.wait_for(key, "done")


async def test_a_run_is_cancelled_when_its_lease_cannot_be_renewed(
    system_apart: System, bench_apart: Bench, own_server: Server
) -> None:
    worker = await system_apart.start()
    key = await bench_apart.fire("slow", kwargs={"seconds": 100}, lease=2)
    await bench_apart.wait_for_effect(key, "began")
    own_server.pause()
    await eventually(lambda: "lost the lease" in worker.text())
    own_server.resume()
    # In the process nobody but the sweep runs the slot again, once the renewal that the paused server held is over.
    await bench_apart.wait_for_effect(key, "began", "began", sweeping=system_apart.kind == "inprocess")
    assert (await bench_apart.record(key))["spent"] == "1"


async def test_a_run_that_must_not_be_repeated_goes_on_without_its_lease(
    system_apart: System, bench_apart: Bench, own_server: Server
) -> None:
    worker = await system_apart.start()
    key = await bench_apart.fire("slow", kwargs={"seconds": 100}, lease=1, on_crash="skip")
    await bench_apart.wait_for_effect(key, "began")
    own_server.pause()
    await eventually(lambda: "lost the lease" in worker.text())
    own_server.resume()
    await bench_apart.let_go()
    await bench_apart.wait_for(key, "done")
    assert await bench_apart.effects(key) == ["began", "ended"]


async def test_a_worker_starts_and_enlists_itself_whenever_the_store_comes(
    system_apart: System, bench_apart: Bench, own_server: Server
) -> None:
    own_server.pause()
    starting = asyncio.create_task(system_apart.start())
    await asyncio.sleep(1)
    assert not starting.done()
    own_server.resume()
    await starting
    assert await bench_apart.redis.zscore("ran:tasks", f"{system_apart.kind}:quick")
