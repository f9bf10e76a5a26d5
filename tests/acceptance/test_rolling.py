"""Two versions of the schedule side by side, and what a deploy leaves behind: the rules of docs/deploys.md."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slotqueue import Every
from slotqueue.answers import Run, Word
from slotqueue.events import JobUnknown, SlotsMissed
from slotqueue.slots import key_at
from tests.fleet.fixtures import NewFleet
from tests.fleet.versions import Vanished, World, fire_of, job
from tests.waiting import eventually

AT = datetime(2026, 10, 2, 3, 0, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    world = World(redis_url, AT)
    yield world
    world.close()


async def test_two_versions_side_by_side_decide_the_union_of_their_slots_once_each(new_fleet: NewFleet) -> None:
    """Real processes: both versions run for a while, then the old one is told to go."""
    fleet = new_fleet(sweep_every=0.2, claim_spread=0.05)
    worker = fleet.worker()
    both: dict[str, Any] = {"name": "both", "every": 1, "lookback": 30}
    old, new = (
        fleet.replica(
            name, jobs=[{**both, "kwargs": {"of": name}}, {"name": f"only {name}", "every": 1, "lookback": 30}]
        )
        for name in ("old", "new")
    )
    await fleet.are_ready(worker, old, new)
    await fleet.has_slots("only new", 2)
    old.terminate()
    assert await old.ended() == 0
    last_of_old = fleet.keys("only old")[-1]
    await fleet.has_slots("both", len(fleet.keys("both")) + 2)
    new.terminate()
    assert await new.ended() == 0
    await eventually(lambda: not fleet.redis.zcard("ran:open"))
    assert fleet.keys("only old")[-1] == last_of_old
    for name in ("both", "only old", "only new"):
        keys = fleet.keys(name)
        assert {fleet.state(key) for key in keys} == {"done"}
        assert [fleet.runs(key) for key in keys] == [1] * len(keys)
        fires = [int(fleet.record(key)["fire"]) for key in keys]
        assert fires == list(range(fires[0], fires[-1] + 1000, 1000)), "no gap and no double"
    records = [fleet.record(key) for key in fleet.keys("both")]
    by_version = {(record["by"].partition("-")[0], record["version"]) for record in records}
    assert len(by_version) == len({version for _, version in by_version}), "one version a replica, and not the same"
    assert records[-1]["by"].startswith("new-")


async def test_each_slot_carries_the_arguments_of_the_version_that_won_it(world: World) -> None:
    old, new = (job("report", Every(minutes=1), kwargs={"v": v}) for v in (1, 2))
    await world.lives(world.replica("old", old), world.replica("new", new), seconds=20 * MINUTE, step=10)
    messages = world.enqueued("report")
    assert len({message.slip.key for message in messages}) == len(messages) == 20
    assert {message.kwargs["v"] for message in messages} == {1, 2}, "both had their share"
    for message in messages:
        assert world.record(message.slip.key)["version"] == (old if message.kwargs["v"] == 1 else new).version


async def test_a_changed_schedule_adds_its_slots_while_both_versions_are_there_and_owes_none(world: World) -> None:
    """For an hour both register every five minutes; neither forgets the other, and neither owes what it never had."""
    old = world.replica("old", job("report", Every(minutes=10)))
    new = world.replica("new", job("report", Every(minutes=10, offset=timedelta(minutes=4))))
    await world.lives(old, seconds=HOUR, step=MINUTE)
    await world.lives(old, new, seconds=HOUR, step=MINUTE)
    await world.lives(new, seconds=HOUR, step=MINUTE)
    minutes = [
        (fire_of(message) - AT.replace(minute=0, second=0)) // timedelta(minutes=1) for message in world.messages
    ]
    assert minutes == sorted([*range(10, 121, 10), *range(64, 181, 10)])
    assert not old.told(SlotsMissed) + new.told(SlotsMissed)


async def test_a_deploy_that_is_rolled_back_loses_and_repeats_nothing(world: World) -> None:
    first, second = (job("report", Every(minutes=m), lookback=20) for m in (1, 2))
    before, tried = world.replica("before", first), world.replica("tried", second)
    await world.lives(before, seconds=10 * MINUTE, step=10)
    await world.lives(tried, seconds=4 * MINUTE, step=10)
    back = world.replica("back", first)
    await world.lives(back, seconds=5 * MINUTE, step=10)
    fires = [fire_of(message) for message in world.enqueued("report")]
    assert len(set(fires)) == len(fires)
    whole = [AT + timedelta(minutes=minute, seconds=-30) for minute in range(1, 20)]
    assert set(whole[:10] + whole[14:]) <= set(fires), "what was there before and after"
    assert whole[11] in fires, "and what the other version had"


async def test_under_a_new_name_it_is_a_new_job_and_both_run_while_both_are_there(world: World) -> None:
    old = world.replica("old", job("rollup", Every(minutes=1)))
    new = world.replica("new", job("daily rollup", Every(minutes=1), lookback=5))
    await world.lives(old, seconds=10 * MINUTE, step=10)
    await world.lives(old, new, seconds=2 * MINUTE, step=10)
    assert len(world.enqueued("rollup")) == 12
    assert len(world.enqueued("daily rollup")) == 2, "nothing from before, and a run of its own beside the old name's"
    await world.lives(new, seconds=2 * MINUTE, step=10)
    assert len(world.enqueued("rollup")) == 12


async def test_open_slots_of_a_removed_job_end_as_missed_and_harm_no_other(world: World) -> None:
    """What is queued still runs: workers are rolled separately. What nobody knows is never enqueued again."""
    await world.have_workers("work")
    gone = job("gone", Every(minutes=1))
    old = world.replica("old", gone, job("stays", Every(hours=1)))
    await world.lives(old, seconds=3 * MINUTE, step=10)
    queued = world.enqueued("gone")
    assert len(queued) == 3
    running = await world.begin(queued[1])
    assert isinstance(running, Run)
    new = world.replica("new", job("stays", Every(hours=1)))
    await world.lives(new, seconds=2 * HOUR, step=2 * MINUTE)
    assert len({message.slip.key for message in world.enqueued("stays")}) == 2
    assert len(world.enqueued("gone")) == 3, "nothing new, and nothing again"
    assert {event.job for event in new.told(JobUnknown)} == {"gone"}
    assert await world.work(queued[0]), "a message that is out may be run"
    assert (await world.store.run(world.store.verbs.finish(running))).word is Word.YES, "and a run may end"
    await world.lives(new, seconds=2 * DAY, step=HOUR / 2)
    keys = [message.slip.key for message in queued]
    assert [world.state(key) for key in keys] == ["done", "done", "missed"]
    assert world.record(keys[2])["why"] == "no replica knows its job any more"
    assert not any(world.redis.zmscore("ran:open", keys))


async def test_in_a_deploy_a_slot_is_recovered_soon_by_whoever_knows_its_job(world: World) -> None:
    """A replica dies behind its claim. Most that are left are of the version that does not know the job."""
    await world.have_workers("work")
    first, second = (world.replica(name, job("added", Every(hours=1))) for name in ("first", "second"))
    old = [world.replica(f"old-{i}") for i in range(3)]
    await world.lives(*old, first, seconds=HOUR - MINUTE, step=MINUTE)
    first.vanishes_before_enqueue()
    with pytest.raises(Vanished):
        await world.lives(*old, first, seconds=MINUTE)
    assert not world.enqueued("added")
    await world.lives(*old, second, seconds=MINUTE)
    (message,) = world.enqueued("added")
    assert message.slip.n == 1


async def test_a_take_over_sends_what_the_new_version_says_under_the_old_ones_policy(world: World) -> None:
    """Changed arguments, task and policy of a job: the slot stays the one that the old version won."""
    await world.have_workers("work", "work_v2")
    old_job = job("report", Every(hours=1), kwargs={"v": 1}, max_attempts=2)
    new_job = job("report", Every(hours=1), task="work_v2", kwargs={"v": 2}, max_attempts=5, on_crash="skip")
    old, new = world.replica("old", old_job), world.replica("new", new_job)
    await world.lives(old, seconds=HOUR, step=MINUTE)
    (first,) = world.enqueued("report")
    assert isinstance(await world.begin(first), Run), "its worker vanishes then"
    await world.lives(new, seconds=90, step=5)
    (_, again) = world.enqueued("report")
    assert (again.slip.key, again.slip.n) == (first.slip.key, 1)
    assert (again.task, again.kwargs) == ("work_v2", {"v": 2})
    assert again.slip.terms == first.slip.terms, "it was claimed as a slot to complete, and is completed"
    assert world.record(first.slip.key)["version"] == old_job.version
    assert await world.work(again)
    await world.lives(new, seconds=HOUR, step=MINUTE)
    assert world.enqueued("report")[-1].slip.terms == new_job.terms_text


async def test_a_job_that_comes_back_owes_nothing_once_it_was_away_for_long(world: World) -> None:
    """Back within a quarter of an hour it catches up; later it was removed, and a new one starts."""
    there, gone = job("stays", Every(hours=1)), job("comes and goes", Every(minutes=1), lookback=100)
    one = world.replica("one", there, gone)
    await world.lives(one, seconds=5 * MINUTE, step=10)
    await world.lives(world.replica("without", there), seconds=10 * MINUTE, step=MINUTE)
    await world.lives(world.replica("back", there, gone), seconds=MINUTE)
    assert len(world.enqueued("comes and goes")) == 16, "it was only a deploy"
    await world.lives(world.replica("without", there), seconds=30 * MINUTE, step=MINUTE)
    await world.lives(world.replica("back", there, gone), seconds=MINUTE)
    assert len(world.enqueued("comes and goes")) == 17


async def test_replicas_before_workers_send_once_and_nobody_reports(world: World) -> None:
    """What the order of a deploy is for: a task that no guarded worker has registered."""
    new = world.replica("new", job("report", Every(hours=1), task="brand_new"))
    await world.lives(new, seconds=HOUR, step=MINUTE)
    (first,) = world.enqueued("report")
    assert first.slip.key == key_at("ran", "report", datetime(2026, 10, 2, 4, tzinfo=UTC))
    assert world.state(first.slip.key) == "sent"
    await world.have_workers("brand_new")
    await world.lives(new, seconds=HOUR, step=MINUTE)
    assert world.state(world.enqueued("report")[-1].slip.key) == "queued"
    assert world.state(first.slip.key) == "sent"
