"""Claims: nothing that a replica or a worker leaves behind blocks a slot, and nothing lets one run twice."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from slotqueue import ConfigurationError, Every
from slotqueue.events import SlotTaken, SlotTakenOver
from slotqueue.store.scripts import source_of
from tests.fleet.fixtures import Apps, NewFleet
from tests.fleet.hand import Hand
from tests.hours import hourly_orders
from tests.proxy import Proxy
from tests.servers import Server
from tests.waiting import eventually


@pytest.mark.processes
@pytest.mark.parametrize("policy", ["complete", "skip"])
async def test_a_claim_that_nobody_enqueued_is_sent_by_another_replica_and_blocks_no_later_slot(
    policy: str, new_fleet: NewFleet, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 1, procrastinate-org/procrastinate#1495: killed between recording the slot and creating the message."""
    fleet = new_fleet(jobs=[{"name": "mail", "every": 1, "on_crash": policy}], sweep_every=0.2)
    await fleet.are_ready(fleet.worker())
    job = hand.job("mail", timedelta(seconds=1), on_crash=policy)
    monkeypatch.setattr("slotqueue.store.commands.GRACE_MS", 60_000)  # longer than this takes anywhere
    (message,) = hand.claim(job, hand.latest(job))
    key = message.slip.key
    await fleet.are_ready(fleet.replica("survivor"))
    await fleet.has_slots("mail", 2)
    assert fleet.state(key) == "claimed", "its grace is not over"
    fleet.let_deadline_pass(key)
    record = await fleet.reaches(key, "done")
    later = await fleet.has_slots("mail", 4)
    assert record["by"] == "by-hand"
    assert record["n"] == "1"
    assert {fleet.runs(each) for each in later if fleet.state(each) == "done"} == {1}


_KEPT: dict[str, dict[str, Any]] = {
    "by default": {},
    "not at all": {"keep_result": 0},
    "forever": {"keep_result_forever": True},
}


@pytest.mark.processes
async def test_a_second_attempt_runs_whatever_arq_keeps_of_the_first(new_fleet: NewFleet, hand: Hand) -> None:
    """Case 3, python-arq/arq#432, #417, #531: a kept result makes `enqueue_job` return None, and nothing runs."""
    functions = {f"mends {how}": ("mends", options) for how, options in _KEPT.items()}
    policy: dict[str, Any] = {"on_failure": "again", "max_attempts": 2}
    jobs = [{"name": how, **hourly_orders(), "task": f"mends {how}", **policy} for how in _KEPT]
    fleet = new_fleet(jobs=jobs, functions=functions, sweep_every=0.2)
    replica = fleet.replica("replica")
    await fleet.are_ready(fleet.worker(), replica)
    keys = []
    for how in _KEPT:
        job = hand.job(how, timedelta(hours=1), task=f"mends {how}", **policy)
        (message,) = hand.claim(job, hand.latest(job))
        keys.append(message.slip.key)
        fleet.let_deadline_pass(message.slip.key)
    for key in keys:
        await fleet.reaches(key, "failed")
        assert not fleet.redis.exists(f"{key}:done"), "a run that failed is not done"
    await eventually(lambda: not fleet.redis.exists(*(f"arq:job:{key}" for key in keys)), why="arq puts them away")
    for key in keys:
        fleet.let_deadline_pass(key)
    for key in keys:
        await fleet.reaches(key, "done")
        assert fleet.runs(key) == 2
    assert not replica.events("EnqueueRefused")


def test_a_claim_that_would_die_too_early_is_refused_when_the_job_is_added(apps: Apps) -> None:
    """Case 6, lukas-krecan/ShedLock#6: shorter than what a late replica may still ask for."""
    app = apps.new()
    with pytest.raises(ConfigurationError, match=r"job 'mail', retention: .*or more"):
        app.add("mail", Every(minutes=1), retention=60)
    app.add("mail", Every(minutes=1), retention=timedelta(minutes=6))


@pytest.mark.processes
async def test_a_replica_whose_claims_never_arrive_wins_nothing_and_heals_itself(
    redis_url: str, server: Server, new_fleet: NewFleet
) -> None:
    """Case 7, sibson/redbeat#208: an error while claiming was taken for a win."""
    with Proxy(server.port) as proxy:
        fleet = new_fleet(jobs=[{"name": "mail", "every": 1}])
        await fleet.are_ready(fleet.worker(), fleet.replica("healthy"), cut_off := fleet.replica("b", url=proxy.url))
        proxy.reset_whoever_says(_digest("claim"))
        await fleet.has_slots("mail", fleet.states("mail").count("done") + 6)
        during = cut_off.events("StoreLost")
        assert during
        assert proxy.resets > 1
        lost_at = during[0]["at"]
        claimed = [event for event in cut_off.events("SlotClaimed") if event["at"] > lost_at]
        assert not claimed
        proxy.forward()
        await cut_off.told("StoreBack")
        asked = len(cut_off.events("SlotClaimed", "SlotTaken"))
        await eventually(lambda: len(cut_off.events("SlotClaimed", "SlotTaken")) > asked + 1, why="it asks again")
        assert cut_off.is_alive
        assert all(fleet.runs(key) == 1 for key in fleet.keys("mail") if fleet.state(key) == "done")


def _digest(verb: str) -> str:
    return hashlib.sha1(source_of(verb).encode()).hexdigest()


@pytest.mark.parametrize("is_claim_gone", [False, True], ids=["claim and record there", "only the done marker left"])
async def test_a_replica_that_starts_late_finds_what_is_done(
    is_claim_gone: bool, new_fleet: NewFleet, hand: Hand, apps: Apps
) -> None:
    """Case 9, bensheldon/good_job PR #767: deleting what is finished deleted the proof that it had run."""
    fleet = new_fleet()
    job = hand.job("mail", timedelta(seconds=1))
    hand.know(job)
    await fleet.next_second()
    for message in hand.claim(job, hand.latest(job)):
        key = message.slip.key
        run = hand.begin(message.slip)
        hand.finish(run)
    fleet.redis.hdel("ran:decided", "mail")  # another replica knows nothing of it
    if is_claim_gone:
        fleet.redis.delete(key, f"{key}:record")
    late = apps.new()
    late.add("mail", Every(seconds=1), task="quick", lookback=600, retention=3600)
    await late.tick()
    assert [event for event in apps.told(SlotTaken) if event.key == key], "it did ask"
    assert fleet.redis.zscore("arq:queue", key) is None
    assert fleet.redis.pttl(f"{key}:done") > 0


@pytest.mark.processes
async def test_a_killed_workers_slot_runs_once_more_within_lease_and_sweep(new_fleet: NewFleet) -> None:
    """Case 11, python-arq/arq#343: arq's in-progress key outlives the worker by `job_timeout` and more.

    Case 2, kagkarlsson/db-scheduler#365: a slow job, five sweeps long, is not taken for a dead one.
    """
    job = {"name": "mail", **hourly_orders(), "task": "slow", "kwargs": {"seconds": 60}, "lease": 1}
    fleet = new_fleet(jobs=[job], sweep_every=0.3, worker={"job_timeout": 300})
    workers = [fleet.worker(name) for name in ("one", "other")]
    await fleet.are_ready(*workers, fleet.replica("replica"))
    hand = Hand(fleet.url)
    mine = hand.job("mail", timedelta(hours=1), task="slow", lease=1)
    (message,) = hand.claim(mine, hand.latest(mine))
    hand.close()
    key = message.slip.key
    fleet.let_deadline_pass(key)
    await eventually(lambda: fleet.runs(key) == 1)
    assert fleet.state(key) == "running"
    sent, deadline = fleet.record(key)["n"], fleet.redis.zscore("ran:open", key)
    await eventually(lambda: fleet.redis.zscore("ran:open", key) > deadline + 1000, why="the lease is renewed")
    assert (fleet.record(key)["n"], fleet.state(key)) == (sent, "running")
    next(worker for worker in workers if worker.pid == fleet.marks(key)[0]["pid"]).kill()
    killed_at = fleet.now()
    assert fleet.redis.zscore("ran:open", key) is not None, "the waiting slot is listed"
    await eventually(lambda: fleet.runs(key) == 2)
    taken_over = [event for event in fleet.events("SlotTakenOver") if event["before"] == "running"]
    assert len(taken_over) == 1
    began = int(fleet.record(key)["began"]) / 1000
    assert began - killed_at < 10, "the lease, a sweep, and the poll of the worker: a second or two, and not 310"
    fleet.let_go()
    await fleet.reaches(key, "done")
    assert fleet.runs(key) == 2
    assert fleet.record(key)["spent"] == "1"


async def test_open_slots_of_a_stopped_worker_pool_are_not_sent_again(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 2, celery/celery#3270: "not done" alone justifies nothing; the message is on the queue still."""
    fleet = new_fleet()
    fleet.redis.zadd("ran:tasks", {"arq:quick": 10**14})
    app = apps.new()
    app.add("mail", Every(seconds=1), task="quick")
    await app.tick()
    await fleet.next_second()
    await app.tick()
    for _ in range(20):
        await app.sweep()
    assert not apps.told(SlotTakenOver)
    assert set(fleet.redis.zrange("arq:queue", 0, -1)) == set(fleet.keys("mail")) != set()
