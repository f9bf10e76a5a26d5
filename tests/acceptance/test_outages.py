"""Redis goes away, hangs, loads, loses its data: no loop ends, no slot within the lookback is lost, none runs twice."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Literal

import pytest

from slotqueue import Every, SlotQueue
from slotqueue.events import PassFailed, SlotEnqueued, StoreBack, StoreLost
from slotqueue.protocols import Process
from slotqueue.slots import from_ms, key_at, parse_key
from tests.fleet.fixtures import Apps, NewFleet
from tests.fleet.fleet import Fleet
from tests.fleet.hand import Hand
from tests.proxy import Proxy
from tests.servers import Server, ServerFailed
from tests.stopwatch import Stopwatch
from tests.waiting import eventually

pytestmark = pytest.mark.processes
POLICIES: tuple[Literal["complete", "skip"], ...] = ("complete", "skip")


def _no_slot_is_absent(fleet: Fleet, job: str, *, every: int = 1) -> list[str]:
    keys = fleet.keys(job)
    fires = [int(parse_key(key).fire_time.timestamp()) for key in keys]
    assert fires == list(range(fires[0], fires[-1] + 1, every))
    return keys


def _are_all_enqueued(apps: Apps, fleet: Fleet, job: str) -> bool:
    return set(fleet.keys(job)) <= {event.key for event in apps.told(SlotEnqueued)}


async def test_a_redis_that_was_killed_for_a_while_costs_no_slot(
    durable_server: Server, server: Server, new_fleet: NewFleet
) -> None:
    """Case 54, python-arq/arq#435: the loop ended with Redis. Four slots fall into the outage.

    Workers and their queue have another Redis: arq's own worker ends with its queue's.
    """
    server.flush()
    url = server.url
    fleet = new_fleet(
        durable_server.url,
        effects_url=url,
        jobs=[{"name": policy, "every": 1, "lookback": 60, "on_crash": policy} for policy in POLICIES],
    )
    replica, worker = fleet.replica("replica"), fleet.worker()
    await fleet.are_ready(worker, replica)
    await fleet.has_slots("skip", 2)
    at = fleet.now()
    durable_server.kill()
    started = monotonic()
    await eventually(lambda: monotonic() > started + 4.2)
    assert replica.is_alive
    assert worker.is_alive
    durable_server.start()
    with Stopwatch() as watch:
        await replica.told("StoreBack")
    assert watch.seconds < 4, "within two pauses of the loop"
    effects = new_fleet(url)
    for policy in POLICIES:
        await fleet.has_slots(policy, 9)
        keys = _no_slot_is_absent(fleet, policy)[:-1]
        during = [key for key in keys if at < parse_key(key).fire_time.timestamp() < at + 4]
        assert len(during) >= 3
        for key in keys:
            await fleet.reaches(key, "done")
        assert [effects.runs(key) for key in keys] == [1] * len(keys)
    assert not fleet.events("PassFailed", "SlotsMissed")


@pytest.mark.parametrize("how", ["refused", "swallowed"])
async def test_a_network_that_breaks_costs_no_slot(how: str, server: Server, apps: Apps, new_fleet: NewFleet) -> None:
    """Case 54 again: connections that are reset, and connections that stay and say nothing."""
    fleet = new_fleet()
    with Proxy(server.port) as proxy:
        app = apps.new(proxy.url)
        for policy in POLICIES:
            app.add(policy, Every(seconds=1), on_crash=policy, lookback=20)
        await app.start()
        await eventually(lambda: apps.told(SlotEnqueued))
        proxy.refuse() if how == "refused" else proxy.swallow()
        await eventually(lambda: apps.told(StoreLost))
        lost_at = fleet.now()
        await fleet.passes(lost_at + 2)
        proxy.forward()
        await eventually(lambda: apps.told(StoreBack))
        await fleet.passes(int(fleet.now()) + 1.5)
        for policy in POLICIES:
            await eventually(partial(_are_all_enqueued, apps, fleet, policy))
            assert len(_no_slot_is_absent(fleet, policy)) >= 4
        assert not apps.told(PassFailed)
        enqueued = [event.key for event in apps.told(SlotEnqueued)]
        assert len(enqueued) == len(set(enqueued))
        await app.stop()


async def test_a_slow_network_makes_slots_late_and_nothing_else(
    server: Server, apps: Apps, new_fleet: NewFleet
) -> None:
    fleet = new_fleet()
    with Proxy(server.port) as proxy:
        proxy.delay(0.3)
        app = apps.new(proxy.url)
        app.add("mail", Every(seconds=1), lookback=20)
        await app.start()
        await eventually(lambda: len(apps.told(SlotEnqueued)) >= 3)
        await app.stop()
        keys = _no_slot_is_absent(fleet, "mail")
        assert all(int(fleet.record(key)["claimed"]) >= int(fleet.record(key)["fire"]) for key in keys)


async def test_a_redis_that_hangs_or_loads_is_waited_for(new_fleet: NewFleet) -> None:
    """Case 54, python-arq/arq#498: a hang of several seconds, then a restart that takes seconds to load its data."""
    slow = ["--key-load-delay", "1000", "--rdbcompression", "no"]  # it answers in between, every 2 MB
    with Server(options=slow) as own:
        fleet = new_fleet(own.url, jobs=[{"name": "mail", "every": 1, "lookback": 60}])
        fleet.redis.mset({f"ballast:{i}": "x" * 4000 for i in range(2000)})
        await fleet.are_ready(replica := fleet.replica("replica"))
        await fleet.has_slots("mail", 1, state="sent")
        own.pause()
        started = monotonic()
        await eventually(lambda: replica.events("StoreLost"))
        assert monotonic() - started > 1
        own.resume()
        await replica.told("StoreBack")
        restarting = threading.Thread(target=lambda: own.restart(keep_data=True))
        restarting.start()
        said = set()
        while restarting.is_alive():
            try:
                own.ask("PING", timeout_s=2)
            except (ServerFailed, OSError) as error:
                said.add("loading" if "LOADING" in str(error) else "away")
            await asyncio.sleep(0.02)
        assert "loading" in said
        seen = len(fleet.keys("mail"))
        await fleet.has_slots("mail", seen + 2, state="sent")
        _no_slot_is_absent(fleet, "mail")
        assert replica.is_alive
        assert not fleet.events("PassFailed", "SlotsMissed", "DataLost")


async def test_after_a_loss_of_data_complete_jobs_are_offered_again_and_skip_jobs_are_not(
    own_server: Server, redis_url: str, new_fleet: NewFleet
) -> None:
    """FLUSHALL under a live replica, while arq's Redis and its kept results survive.

    What is due of a skip job when the loss is noticed counts as missed: another replica may have had it run.
    """
    jobs = [{"name": policy, "every": 1, "on_crash": policy, "lookback": 4} for policy in POLICIES]
    effects = new_fleet(redis_url)
    fleet = new_fleet(own_server.url, jobs=jobs, effects_url=redis_url)
    await fleet.are_ready(fleet.worker(), replica := fleet.replica("replica"))
    for policy in POLICIES:
        await fleet.has_slots(policy, 6)
    before = _flushed(fleet)
    await replica.told("DataLost")
    await eventually(lambda: effects.runs(before["complete"][-1]) == 2, why="the newest is run again")
    for name, known in before.items():
        await eventually(partial(_is_new, fleet, name, known), why=f"{name} goes on")

    runs = {policy: [effects.runs(key) for key in keys] for policy, keys in before.items()}
    assert set(runs["skip"]) == {1}
    assert runs["complete"][:-5] == [1] * len(runs["complete"][:-5]), "older than the lookback"
    assert all(run <= 2 for run in runs["complete"])
    after = fleet.keys("skip")
    for key in after:
        await fleet.reaches(key, "done")
    assert {effects.runs(key) for key in after} == {1}
    assert {event["job"] for event in replica.events("SlotsMissed")} <= {"skip"}


_FLUSH = """
local found = {}
for _, job in ipairs(ARGV) do
  local done = {}
  for _, tail in ipairs(redis.call('ZRANGE', 'ran:' .. job .. ':slots', 0, -1)) do
    local key = 'ran:' .. job .. ':' .. tail
    if redis.call('EXISTS', key .. ':done') == 1 then done[#done + 1] = key end
  end
  found[#found + 1] = done
end
redis.call('FLUSHALL')
return found
"""


def _flushed(fleet: Fleet) -> dict[str, list[str]]:
    """Drop all data; the done slots of each job at that very instant."""
    return dict(zip(map(str, POLICIES), fleet.redis.eval(_FLUSH, 0, *POLICIES), strict=True))


async def test_after_a_loss_of_data_slots_are_followed_before_the_workers_are_back(
    apps: Apps, new_fleet: NewFleet, hand: Hand
) -> None:
    """A slot that is sent for a task whose workers Redis has forgotten would be sent once and never followed."""
    fleet = new_fleet()
    hand.store.run(hand.store.verbs.enlist(Process("worker", tasks=("arq:mail",))))
    app = apps.new()
    app.add("mail", Every(seconds=1))
    await _ticks_until(app, fleet, "queued")
    fleet.redis.flushall()
    await _ticks_until(app, fleet, "queued")
    assert "sent" not in fleet.states("mail")


async def _ticks_until(app: SlotQueue, fleet: Fleet, state: str) -> None:
    while state not in fleet.states("mail"):
        await fleet.next_second()
        counts = await app.tick()
        assert not counts["sent"]


def _is_new(fleet: Fleet, job: str, known: list[str]) -> bool:
    return bool(set(fleet.keys(job)) - set(known))


# ---- keys and their lives


async def test_killed_replicas_leave_no_key_for_ever_and_hold_up_no_slot(
    new_fleet: NewFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 15, coleifer/huey#663, sibson/redbeat#85, #100: stuck at lock acquisition after a deploy."""
    jobs = [{"name": policy, "every": 1, "on_crash": policy} for policy in POLICIES]
    fleet = new_fleet(jobs=[*jobs, {"name": "slow", "every": 2, "task": "slow", "kwargs": {"seconds": 1}}])
    worker = fleet.worker()
    replicas = [fleet.replica("one"), fleet.replica("two")]
    await fleet.are_ready(worker, *replicas)
    await fleet.has_slots("complete", 2)
    hand = Hand(fleet.url)
    monkeypatch.setattr("slotqueue.store.commands.GRACE_MS", 60_000)  # longer than this takes anywhere
    job = hand.job("complete", timedelta(seconds=1))
    for replica in replicas:
        replica.kill()
    await fleet.next_second()
    left = hand.claim(job, hand.latest(job))[0].slip.key
    hand.close()
    worker.kill()

    mortal = {key for key in fleet.redis.scan_iter("ran:*") if fleet.redis.ttl(key) > 0}
    immortal = set(fleet.redis.scan_iter("ran:*")) - mortal
    assert immortal <= {"ran:epoch", "ran:jobs", "ran:pauses"}
    assert left in mortal

    await fleet.are_ready(fleet.worker("worker-new"), fleet.replica("new"))
    await fleet.next_second()
    key = key_at("ran", "complete", from_ms(int(fleet.now()) * 1000))
    record = await fleet.reaches(key, "done")
    assert int(record["began"]) - int(record["fire"]) < 8000, "no grace, no lease and no lock was waited for"
    assert fleet.state(left) == "claimed", "it waits for its grace, and only it"
