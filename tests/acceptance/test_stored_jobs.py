"""Jobs stored in Redis, as replicas work by them: put, changed, removed, shadowed, unreadable, lost."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

import pytest

from slotqueue import ConfigurationError, VersionConflict
from slotqueue.events import DataLost, JobsChanged, JobShadowed, JobUnusable, SlotClaimed
from slotqueue.ops import Site, put, remove, stored
from tests.fleet.fixtures import Apps, NewFleet
from tests.hours import hourly
from tests.waiting import eventually

LEAD_S = 0.02
"""A slot is claimed this long before its time."""


async def changed(apps: Apps, count: int) -> None:
    """Wait until the replicas have learned of so many changes, all together."""
    await eventually(lambda: len(apps.told(JobsChanged)) >= count)


@pytest.mark.alone
async def test_a_job_that_is_put_and_removed_reaches_every_replica_within_two_seconds(
    apps: Apps, new_fleet: NewFleet
) -> None:
    fleet = new_fleet()
    replicas = [apps.new() for _ in range(3)]
    for app in replicas:
        await app.start()
    await eventually(lambda: all(app.is_ready for app in replicas))
    began = monotonic()
    found = await replicas[0].ops.put("mail", "every 1s", kwargs={"kind": "short"})
    await changed(apps, 3)
    assert monotonic() - began < 2
    await fleet.has_slots("mail", 2, state="sent")
    key = fleet.keys("mail")[0]
    assert fleet.record(key)["version"] == f"s{found.version}", "the record says which version won"
    assert int(fleet.record(key)["fire"]) - found.version < 1000, "its first slot is the first one after the put"

    began = monotonic()
    await replicas[0].ops.remove("mail", version=found.version)
    removed_at = fleet.now()
    await changed(apps, 6)
    assert monotonic() - began < 2
    last = max(int(fleet.record(key)["fire"]) / 1000 for key in fleet.keys("mail"))
    assert last <= removed_at + LEAD_S, "claimed ahead of its time, and before the job was removed"
    claimed = [event.key for event in apps.told(SlotClaimed)]
    assert len(claimed) == len(set(claimed))
    assert await replicas[0].ops.stored() == ()


async def test_no_slot_is_claimed_after_the_remove_though_a_replica_has_not_heard_of_it(
    apps: Apps, new_fleet: NewFleet
) -> None:
    fleet = new_fleet()
    app = apps.new()
    await fleet.next_second()  # so that its next slot is not claimed ahead
    await app.ops.put("mail", "every 1s")
    await app.tick()
    before = fleet.keys("mail")
    await fleet.next_second()
    await app.ops.remove("mail")
    counts = await app.tick()
    assert counts["offered"] == counts["stale"] >= 1
    assert fleet.keys("mail") == before
    assert not await app.tick(), "by then it has heard of it"


async def test_a_changed_job_runs_by_its_new_version_only(apps: Apps, new_fleet: NewFleet) -> None:
    fleet = new_fleet()
    app = apps.new()
    await fleet.next_second()  # so that its next slot is not claimed ahead by the old version
    await app.ops.put("mail", "every 1s", task="old")
    await app.tick()
    found = await app.ops.put("mail", "every 1s", task="new")
    await fleet.next_second()
    await app.tick()
    await app.tick()
    records = [fleet.record(key) for key in fleet.keys("mail")]
    after = [record for record in records if int(record["fire"]) > found.version]
    assert {(record["task"], record["version"]) for record in after} == {("arq:new", f"s{found.version}")}


async def test_a_job_in_code_goes_before_a_stored_one_until_it_leaves(apps: Apps, new_fleet: NewFleet) -> None:
    fleet = new_fleet()
    app = apps.new()
    app.add("mail", hourly(), task="from_code")
    found = await app.ops.put("mail", "every 1s", task="stored")
    assert "which goes before it" in found.problem
    await app.tick()
    await fleet.next_second()
    await app.tick()
    assert [event.job for event in apps.told(JobShadowed)] == ["mail"], "said once"
    assert "arq:stored" not in {fleet.record(key)["task"] for key in fleet.keys("mail")}
    app.remove("mail")
    await app.tick()
    await fleet.next_second()
    await app.tick()
    assert fleet.record(fleet.keys("mail")[-1])["task"] == "arq:stored"
    app.add("mail", hourly(), task="from_code")
    assert len(apps.told(JobShadowed)) == 2
    with pytest.raises(ConfigurationError, match="no such job is stored"):
        await app.ops.remove("other")


async def test_a_job_that_a_replica_cannot_run_is_said_once_and_the_others_go_on(
    apps: Apps, new_fleet: NewFleet
) -> None:
    fleet = new_fleet()
    app = apps.new()
    site = Site.at(fleet.url)
    await put(site, "celery's", "every 1s", enqueuer="celery", on_crash="skip")
    await put(site, "mail", "every 1s", on_crash="skip")
    for name, entry in (("newer", '1 1 v1 {"format": 9}'), ("damaged", "rubbish")):
        fleet.redis.hset("ran:stored", name, entry)
        fleet.redis.zadd("ran:changes", {f"+{name}": 1})
    await app.tick()
    await fleet.next_second()
    await app.tick()
    assert fleet.keys("mail")
    problems = {event.job: event.problem for event in apps.told(JobUnusable)}
    assert len(apps.told(JobUnusable)) == len(problems) == 3
    assert "has no enqueuer of the kind 'celery'" in problems["celery's"]
    assert "newer slotqueue" in problems["newer"]
    assert "damaged" in problems["damaged"]
    listed = {each.name: each for each in await stored(site)}
    assert listed["mail"].problem == ""
    assert listed["newer"].job is None
    assert "newer slotqueue" in listed["newer"].problem
    assert await remove(site, "damaged")
    await site.close()


async def test_stored_jobs_survive_a_loss_of_data_while_a_replica_lives(apps: Apps, new_fleet: NewFleet) -> None:
    fleet = new_fleet()
    app = apps.new()
    before = await app.ops.put("mail", "every 1s")
    await app.tick()
    fleet.redis.flushall()
    await fleet.next_second()
    for _ in range(3):
        await app.tick()
    assert apps.told(DataLost)
    (after,) = await app.ops.stored()
    assert (after.name, after.version, after.job) == ("mail", before.version, before.job)
    assert fleet.keys("mail")


@pytest.mark.alone
async def test_an_idle_replica_asks_each_second_and_a_half(apps: Apps, new_fleet: NewFleet) -> None:
    fleet = new_fleet()
    app = apps.new(sweep_every=600)
    await app.ops.put("mail", hourly())
    await app.start()
    await eventually(lambda: app.is_ready)
    fleet.redis.config_resetstat()
    began = monotonic()
    await asyncio.sleep(4)
    stats: Any = fleet.redis.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] <= (monotonic() - began) / 1.5 + 2, "one more for a sign of life at most"
    assert stats["cmdstat_evalsha"]["calls"] >= 2


async def test_of_two_who_change_a_job_the_slower_one_is_told(apps: Apps) -> None:
    app = apps.new()
    first = await app.ops.put("mail", "every 1 h", version=0)
    second = await app.ops.put("mail", "every 2 h", version=first.version)
    with pytest.raises(VersionConflict, match="by now, not") as caught:
        await app.ops.put("mail", "every 3 h", version=first.version)
    assert caught.value.version == second.version
    with pytest.raises(VersionConflict, match="it is stored already"):
        await app.ops.put("mail", "every 3 h", version=0)
    with pytest.raises(VersionConflict, match="by now, not"):
        await app.ops.remove("mail", version=first.version)
    with pytest.raises(VersionConflict, match="no job of this name is stored"):
        await app.ops.put("other", "every 3 h", version=7)
    with pytest.raises(ConfigurationError, match="is no version"):
        await app.ops.put("mail", "every 3 h", version=True)
    (found,) = await app.ops.stored()
    assert found.job is not None
    assert str(found.job.schedule) == "every 7200s"
