"""The registry remembers when each schedule was in force, so that what should have run can be told without code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slotqueue import Cron, Every
from slotqueue.answers import Known
from slotqueue.jobs import Job
from slotqueue.protocols import Process
from slotqueue.store import AsyncStore
from slotqueue.store.asking import Asker
from slotqueue.store.registry import Registry, Span, read_entry, read_registry
from tests.store.registering import hourly_job, register
from tests.store.stage import DAY, EPOCH_VALUE, HOUR, MINUTE, NAMESPACE, Stage
from tests.store.test_register import Fleet


@pytest.fixture
async def asker(redis_url: str) -> AsyncIterator[Asker]:
    store = AsyncStore(redis_url, NAMESPACE)
    yield Asker(store, NAMESPACE)
    await store.close()


@pytest.fixture
def fleet(stage: Stage) -> Fleet:
    return Fleet(stage)


def changed(job: Job) -> Job:
    return replace(job, schedule=Cron("30 * * * *"))


async def spans(asker: Asker, job: str = "rollup") -> list[tuple[str, int, int | None]]:
    """The spans of a job, in minutes before now."""
    registry = await read_registry(asker)

    def ago(ms: int | None) -> int | None:
        return None if ms is None else round((registry.now - ms) / MINUTE)

    entry, schedules = await read_entry(asker, job)
    assert entry == registry.jobs[job]
    assert schedules.items() <= registry.schedules.items()
    found = [(registry.schedules.get(each.version, "?"), ago(each.since), ago(each.until)) for each in entry.spans]
    return [(text, since or 0, until) for text, since, until in found]


async def test_a_job_is_known_with_its_schedule_its_policy_and_its_task(stage: Stage, asker: Asker) -> None:
    job = hourly_job(jitter=30, done_within=60)
    register(stage, job, since=1000, decided=2000)
    registry = await read_registry(asker)
    entry = registry.jobs["rollup"]
    assert entry.about is not None
    assert entry.about == (30_000, job.terms, "arq:do_rollup")
    assert (entry.spans, entry.decided) == ((Span(job.schedule_version, 1000, None),), 2000)
    assert registry.schedules == {job.schedule_version: "every 3600s"}
    assert registry.fleet_seen >= registry.now - MINUTE


async def test_what_is_not_said_again_stays(stage: Stage, asker: Asker) -> None:
    job = hourly_job()
    register(stage, job)
    short = Known(job.name, job.schedule_version)
    stage.run(stage.verbs.register(Process("r1"), [short], epoch=EPOCH_VALUE, is_last=True))
    registry = await read_registry(asker)
    assert registry.jobs["rollup"].about is not None
    assert registry.schedules == {job.schedule_version: "every 3600s"}


async def test_side_by_side_both_schedules_are_in_force(stage: Stage, asker: Asker, fleet: Fleet) -> None:
    old, new = hourly_job(), changed(hourly_job())
    register(stage, old)
    fleet.wait(10 * MINUTE)
    register(stage, new, replica="r2")
    register(stage, old)
    assert await spans(asker) == [("cron 30 * * * * UTC", 0, None), ("every 3600s", 10, None)]


async def test_a_schedule_ends_where_another_came_and_it_was_not_seen_since(
    stage: Stage, asker: Asker, fleet: Fleet
) -> None:
    old, new = hourly_job(), changed(hourly_job())
    register(stage, old)
    fleet.wait(3 * HOUR)  # nobody is there: its slots of these hours are owed
    register(stage, new)
    fleet.wait_while_up(10 * MINUTE, Known.of(new))
    assert await spans(asker) == [("every 3600s", 190, 10), ("cron 30 * * * * UTC", 10, None)]
    fleet.wait_while_up(20 * MINUTE, Known.of(new))
    assert await spans(asker) == [("every 3600s", 210, 30), ("cron 30 * * * * UTC", 30, None)]
    assert stage.redis.hget("ran:past", "rollup") is not None


async def test_a_version_that_came_and_left_is_in_force_no_more_while_the_old_one_is(
    stage: Stage, asker: Asker, fleet: Fleet
) -> None:
    old, new = hourly_job(), changed(hourly_job())
    register(stage, old)
    fleet.wait(MINUTE)
    register(stage, new, replica="r2")
    fleet.wait_while_up(10 * MINUTE, Known.of(old))
    assert await spans(asker) == [("cron 30 * * * * UTC", 10, 10), ("every 3600s", 11, None)]
    fleet.wait_while_up(10 * MINUTE, Known.of(old))
    assert await spans(asker) == [("cron 30 * * * * UTC", 20, 20), ("every 3600s", 21, None)]
    fleet.wait(3 * HOUR)  # nobody is there: the old one is owed
    assert (await spans(asker))[-1] == ("every 3600s", 201, None)


async def test_a_job_that_was_removed_owes_nothing_from_then(stage: Stage, asker: Asker, fleet: Fleet) -> None:
    job, other = hourly_job(), hourly_job("other")
    register(stage, job, other)
    fleet.wait_while_up(30 * MINUTE, Known.of(other))
    assert await spans(asker) == [("every 3600s", 30, 30)]
    assert not (await read_registry(asker)).jobs["rollup"].is_in_force
    register(stage, job)
    assert await spans(asker) == [("every 3600s", 30, 30), ("every 3600s", 0, None)]


async def test_while_no_replica_is_there_a_schedule_stays_in_force(stage: Stage, asker: Asker, fleet: Fleet) -> None:
    register(stage, hourly_job())
    fleet.wait(2 * DAY)
    assert await spans(asker) == [("every 3600s", 2 * 24 * 60, None)]


async def test_only_so_many_past_schedules_are_kept(stage: Stage, asker: Asker, fleet: Fleet) -> None:
    now, job = stage.now(), hourly_job()
    ends = [now - number * HOUR for number in reversed(range(60))]
    entries = [f"v{number}:{end - HOUR}:{end}" for number, end in enumerate(ends)]
    stage.redis.hset("ran:past", "rollup", " ".join([f"old:1:{now - 92 * DAY}", *entries]))
    register(stage, job)
    fleet.wait_while_up(30 * MINUTE, Known("other", "v1"))
    register(stage, job)
    kept = stage.redis.hget("ran:past", "rollup").split()
    assert len(kept) == 50
    assert kept[0].startswith("v11:")


async def test_damage_is_no_schedule(stage: Stage, asker: Asker) -> None:
    register(stage, hourly_job())
    stage.redis.hset("ran:about", "rollup", "c a a nonsense")
    stage.redis.hset("ran:past", "rollup", "v1 v2:x:y v3:1:2")
    registry: Registry = await read_registry(asker)
    assert registry.jobs["rollup"].about is None
    assert registry.jobs["rollup"].spans[-2:-1] == (Span("v3", 1, 2),)
    assert await read_entry(asker, "nobody") == (None, {})


async def test_the_texts_live_as_long_as_somebody_registers(stage: Stage) -> None:
    register(stage, hourly_job())
    assert stage.life_of("ran:schedules") == stage.life_of("ran:about") == 365 * DAY


async def test_every_schedule_of_ours_is_read_back_from_the_registry(stage: Stage, asker: Asker) -> None:
    register(stage, hourly_job(schedule=Every(seconds=90, offset=7)))
    (text,) = (await read_registry(asker)).schedules.values()
    assert text == "every 90s offset 7s"
