"""Replicas that race for slots: each slot is decided once, whoever is early, late, frozen or of another version."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta

import pytest

from slotqueue.slots import from_ms, key_at, parse_key
from tests.fleet.fixtures import NewFleet
from tests.fleet.fleet import Fleet
from tests.fleet.hand import Hand
from tests.hours import hourly_orders
from tests.waiting import eventually

CLOCKS_OFF = (0, 600, -600, 180, -180)
TICKS_LATE = (0, 0.1, 0.4, 1, 2)


def _keys_from(fleet: Fleet, job: str, count: int, *, every: int = 1) -> list[str]:
    """The next slots of a job that are surely still to come."""
    first = math.ceil((fleet.now() + 0.3) / every) * every
    return [key_at("ran", job, from_ms((first + i * every) * 1000)) for i in range(count)]


def _attempts(fleet: Fleet, key: str) -> dict[str, str]:
    """How each replica fared: "SlotClaimed" or "SlotTaken"."""
    told = fleet.events("SlotClaimed", "SlotTaken", key=key)
    assert len({event["by"] for event in told}) == len(told), "no replica asks twice"
    return {event["by"]: event["event"] for event in told}


def _late_ms(fleet: Fleet, key: str) -> int:
    """How long after its fire time a slot was in the queue at the latest, by Redis's clock; negative for before."""
    record = fleet.record(key)
    return int(record.get("queued") or record["began"]) - int(record["fire"])


async def test_five_replicas_out_of_step_run_ten_slots_ten_times(new_fleet: NewFleet) -> None:
    """Clocks up to ten minutes off, ticks up to two seconds late, and instant jobs of which arq keeps nothing.

    Case 5, python-arq/arq#196: a job is over and cleaned away before a slower replica looks. Three jobs: 30 slots.
    The guide: compute the key on several replicas with skewed clocks; the claiming replica is recorded.
    """
    jobs = [{"name": name, "every": 1, "lookback": 30} for name in ("mail", "rollup", "cache")]
    fleet = new_fleet(jobs=jobs, worker={"keep_result": 0})
    replicas = [
        fleet.replica(f"replica-{i}", clock_off=clock_off, late=late)
        for i, (clock_off, late) in enumerate(zip(CLOCKS_OFF, TICKS_LATE, strict=True))
    ]
    await fleet.are_ready(fleet.worker(), *replicas)
    slots = {job["name"]: _keys_from(fleet, str(job["name"]), 10) for job in jobs}
    everything = [key for keys in slots.values() for key in keys]
    await eventually(lambda: all(len(_attempts(fleet, key)) == 5 for key in everything[9::10]))
    for key in everything:
        await fleet.reaches(key, "done")

    assert [fleet.runs(key) for key in everything] == [1] * 30
    assert len(set(everything)) == 30
    for key in everything:
        attempts = _attempts(fleet, key)
        assert Counter(attempts.values()) == {"SlotClaimed": 1, "SlotTaken": 4}, attempts
        winner = next(by for by, how in attempts.items() if how == "SlotClaimed")
        record, owner = fleet.record(key), fleet.redis.get(key)
        assert record["by"] == owner
        assert owner.startswith(f"{winner}-")
    assert min(_late_ms(fleet, key) for key in everything) >= 0, "a fast clock fires no slot early"
    assert all(replica.is_alive for replica in replicas)


async def test_a_replica_that_takes_the_time_for_later_than_it_is_enqueues_nothing_early(new_fleet: NewFleet) -> None:
    """Case 6, lukas-krecan/ShedLock#231: whatever a replica believes, it waits as long as Redis says in its answer."""
    fleet = new_fleet(jobs=[{"name": "mail", "every": 1}])
    await fleet.are_ready(fleet.worker(), hasty := fleet.replica("hasty", late=-0.4))
    keys = await fleet.has_slots("mail", 3)
    assert min(event["late_ms"] for event in hasty.events("SlotClaimed")) < -100, "it does claim them early"
    assert min(_late_ms(fleet, key) for key in keys) >= 0
    assert all(fleet.runs(key) == 1 for key in fleet.keys("mail") if fleet.state(key) == "done")


async def test_a_replica_that_was_frozen_over_some_slots_runs_none_again(new_fleet: NewFleet) -> None:
    """Case 6, lukas-krecan/ShedLock#132: a replica that wakes up late finds the slots decided, and done."""
    fleet = new_fleet(jobs=[{"name": "mail", "every": 1, "lookback": 30}], worker={"keep_result": 0})
    await fleet.are_ready(fleet.worker(), frozen := fleet.replica("frozen"), fleet.replica("awake"))
    frozen.freeze()
    keys = _keys_from(fleet, "mail", 4)
    for key in keys:
        await fleet.reaches(key, "done")
    frozen.thaw()
    (after,) = _keys_from(fleet, "mail", 1)
    await fleet.reaches(after, "done")
    await eventually(lambda: "frozen" in _attempts(fleet, after), why="the frozen replica ticks again")

    assert {fleet.record(key)["by"].partition("-")[0] for key in keys} == {"awake"}
    assert [fleet.runs(key) for key in [*keys, after]] == [1] * 5
    assert {_attempts(fleet, key).get("frozen") for key in keys} == {"SlotTaken"}


async def test_a_replica_that_was_frozen_until_claims_and_done_markers_ran_out_runs_none_again(
    new_fleet: NewFleet,
) -> None:
    """Case 6, lukas-krecan/ShedLock#132, when nothing is known of a slot any more: its job is decided beyond it."""
    jobs = [{"name": "mail", "every": 1, "lookback": 0}]
    fleet = new_fleet(jobs=jobs, worker={"keep_result": 0})
    await fleet.are_ready(fleet.worker(), frozen := fleet.replica("frozen"), fleet.replica("awake"))
    frozen.freeze()
    since = fleet.now() + 0.3
    keys = await eventually(lambda: len(done := _done_since(fleet, "mail", since)) >= 4 and done)
    past = keys[:3]
    for key in past:
        assert fleet.redis.delete(key, f"{key}:done", f"{key}:record") == 3  # as when their time is over
    frozen.thaw()
    (after,) = _keys_from(fleet, "mail", 1)
    await eventually(lambda: "frozen" in _attempts(fleet, after), why="the frozen replica ticks again")
    await fleet.reaches(after, "done")
    assert fleet.redis.exists(*past) == 0
    assert {fleet.runs(key) for key in [*keys, after]} == {1}
    assert not frozen.events("SlotsMissed")


def _done_since(fleet: Fleet, job: str, since: float) -> list[str]:
    """The slots of a job that were due after `since`, seconds, and are done; oldest first."""
    later = [key for key in fleet.keys(job) if parse_key(key).fire_time.timestamp() > since]
    return [key for key in later if fleet.state(key) == "done"]


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_lone_replica_that_was_frozen_catches_up_each_slot_once(new_fleet: NewFleet, suspends: bool) -> None:
    """Case 45, sidekiq-cron/sidekiq-cron#147: what is due is told by the last slot decided, not by a window of time.

    Case 20, sibson/redbeat#230: the process stays up, and no exception reaches the top; also where the whole machine
    slept, and the replica's own clock with it.
    """
    fleet = new_fleet(jobs=[{"name": "mail", "every": 1, "lookback": 30}])
    await fleet.are_ready(fleet.worker(), replica := fleet.replica("lone", suspends=suspends))
    await fleet.has_slots("mail", 1)
    replica.freeze()
    keys, before = _keys_from(fleet, "mail", 5), fleet.keys("mail")
    await eventually(lambda: fleet.now() > parse_key(keys[3]).fire_time.timestamp() + 0.2)
    assert fleet.keys("mail") == before
    replica.thaw()
    for key in keys:
        await fleet.reaches(key, "done")
    assert [fleet.runs(key) for key in keys] == [1] * 5
    assert not fleet.events("PassFailed", "SlotsMissed")
    assert bool(fleet.events("ClockStepped")) is suspends
    assert replica.is_alive


async def test_a_lone_replica_that_was_frozen_too_long_says_what_it_missed(new_fleet: NewFleet) -> None:
    fleet = new_fleet(jobs=[{"name": "mail", "every": 1, "lookback": 1}])
    await fleet.are_ready(fleet.worker(), replica := fleet.replica("lone"))
    await fleet.has_slots("mail", 1)
    replica.freeze()
    keys, before = _keys_from(fleet, "mail", 5), fleet.keys("mail")
    await eventually(lambda: fleet.now() > parse_key(keys[4]).fire_time.timestamp() + 0.2)
    replica.thaw()
    (gap,) = await eventually(lambda: fleet.redis.lrange("ran:mail:missed", 0, -1))
    after, until = (int(number) for number in gap.split()[:2])
    kept = [key_at("ran", "mail", from_ms(until + 1 + ms)) for ms in (0, 1000)]
    for key in kept:
        await fleet.reaches(key, "done")
    known = fleet.keys("mail")
    missed = [key_at("ran", "mail", from_ms(ms)) for ms in range(after + 1, until + 1) if ms % 1000 == 0]
    assert keys[:3] == [key for key in missed if key in keys[:3]], "all but the newest and the one before"
    assert not set(missed) & set(known)
    assert known[known.index(before[-1]) + 1 :][:2] == kept


def _fires(fleet: Fleet, job: str) -> dict[int, str]:
    """The slots of a job on record: fire time, seconds -> key."""
    return {int(parse_key(key).fire_time.timestamp()): key for key in fleet.keys(job)}


async def test_two_versions_of_a_schedule_run_the_union_of_their_slots_once_each(new_fleet: NewFleet) -> None:
    """A rolling deploy: every 2 s in the old version, every 3 s in the new; side by side, then the new one alone."""
    fleet = new_fleet()
    old = fleet.replica("old", jobs=[{"name": "mail", "every": 2, "lookback": 30}])
    await fleet.are_ready(fleet.worker(jobs=[]), old)
    new = fleet.replica("new", jobs=[{"name": "mail", "every": 3, "lookback": 30}])
    await fleet.are_ready(new)
    start = math.ceil(fleet.now() + 0.3)
    await eventually(lambda: fleet.now() > start + 5.5)
    old.terminate()
    assert await old.ended() == 0
    alone = math.ceil(fleet.now())
    await eventually(lambda: max(_fires(fleet, "mail")) > alone + 2, why="all of these are decided")

    fires = _fires(fleet, "mail")
    assert {at for at in fires if start <= at <= start + 5} == {
        at for at in range(start, start + 6) if at % 2 == 0 or at % 3 == 0
    }
    assert {at for at in fires if alone <= at <= alone + 2} == {at for at in range(alone, alone + 3) if at % 3 == 0}
    versions: dict[str, set[str]] = {}
    for at, key in fires.items():
        record = await fleet.reaches(key, "done")
        assert fleet.runs(key) == 1
        if at % 6:
            versions.setdefault("old" if at % 2 == 0 else "new", set()).add(record["version"])
    assert len(versions["old"]) == len(versions["new"]) == 1
    assert versions["old"] != versions["new"], "the record names the version that won"


async def test_five_sweeps_at_once_enqueue_each_overdue_slot_once(new_fleet: NewFleet, hand: Hand) -> None:
    """Fifty slots whose replica vanished, due for take-over at one instant: each goes out once, by one of the five.

    All five find them overdue before the first one takes any over.
    """
    fleet = new_fleet(jobs=[{"name": "rollup", **hourly_orders()}], sweep_every=0.1, sweep_ms=300)
    await fleet.replicas(5)
    fleet.redis.zadd("ran:tasks", {"arq:quick": 10**14})
    job = hand.job("rollup", timedelta(hours=1))
    messages = hand.claim(job, hand.latest(job, 51)[:50])
    due = int(fleet.now() * 1000) + 500
    fleet.redis.zadd("ran:open", {message.slip.key: due for message in messages})
    keys = {message.slip.key for message in messages}
    await eventually(lambda: all(fleet.state(key) == "queued" for key in keys))
    await fleet.passes(fleet.now() + 1)  # the other four have had their turn by then

    assert {fleet.record(key)["n"] for key in keys} == {"1"}
    taken = Counter(event["key"] for event in fleet.events("SlotTakenOver"))
    assert taken == dict.fromkeys(keys, 1)
    assert set(fleet.redis.zrange("arq:queue", 0, -1)) == keys
    assert fleet.redis.zcard("arq:queue") == 50
