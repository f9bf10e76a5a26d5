"""Jobs that come, change and go: nothing is owed from before, nothing comes back, nothing runs twice."""

from __future__ import annotations

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from slotqueue import Cron, Every
from slotqueue.events import JobTroubled, JobUnknown, SlotClaimed, SlotsMissed
from slotqueue.messages import Slip
from slotqueue.slots import from_ms, key_at
from tests.fleet.fixtures import Apps, NewFleet
from tests.fleet.fleet import Fleet
from tests.fleet.hand import Hand
from tests.hours import hourly

_WEEK_MS = 7 * 86_400_000


def _daily(now: float, minutes: int) -> Cron:
    """Once a day, so many minutes from now; negative for a while ago."""
    at = datetime.fromtimestamp(now, UTC) + timedelta(minutes=minutes)
    return Cron(f"{at.minute} {at.hour} * * *")


@pytest.mark.parametrize("before, after", [(-60, -5), (60, -5), (-5, 60)])
async def test_a_changed_schedule_fires_at_its_next_slot_not_at_the_deploy(
    before: int, after: int, apps: Apps, new_fleet: NewFleet
) -> None:
    """Case 40, celery/celery#2531; celery/django-celery-beat#683, #912."""
    fleet = new_fleet()
    now = fleet.now()
    old = apps.new()
    old.add("report", _daily(now, before), lookback=3)
    await old.tick()
    await old.stop()
    new = apps.new()
    new.add("report", _daily(now, after), lookback=3)
    new.add("brand new", _daily(now, after), lookback=3)
    assert not await new.tick()
    assert not apps.told(SlotsMissed)
    assert not fleet.keys("report")
    assert not fleet.keys("brand new")


async def test_a_shortened_schedule_owes_none_of_the_slots_it_would_have_had(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 44, csi-addons/kubernetes-csi-addons PR #374: over a hundred counted as missed."""
    fleet = new_fleet()
    old = apps.new()
    old.add("report", hourly())
    await old.tick()
    await old.stop()
    new = apps.new()
    new.add("report", Every(seconds=1), lookback=60)
    deployed = fleet.now()
    counts = await new.tick()
    await fleet.next_second()
    counts += await new.tick()
    assert counts["won"] == counts["offered"] == len(fleet.keys("report")) > 0
    fires = [int(fleet.record(key)["fire"]) / 1000 for key in fleet.keys("report")]
    assert min(fires) > deployed
    assert not apps.told(SlotsMissed)
    assert not fleet.redis.exists("ran:report:missed")


async def test_a_job_that_was_away_for_weeks_owes_nothing_when_it_returns(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 41, celery/django-celery-beat#537: re-enabled on a Friday, it fired on that Friday. Catch-up window: 1 h."""
    fleet = new_fleet()
    weekly = Cron(f"0 0 * * {datetime.fromtimestamp(fleet.now(), UTC) - timedelta(days=3):%w}")
    first = apps.new()
    first.add("weekly", weekly, expires=3600)
    first.add("other", Every(days=1))
    await first.tick()
    await first.stop()
    _weeks_pass(fleet, 3, away="weekly")
    second = apps.new()
    second.add("weekly", weekly, expires=3600)
    second.add("other", Every(days=1), lookback=0)
    counts = await second.tick()
    assert not fleet.keys("weekly")
    assert [event for event in apps.told(SlotsMissed) if event.job == "weekly"] == []
    assert counts["offered"] <= 1, "what `other` missed meanwhile is another matter"


def _weeks_pass(fleet: Fleet, weeks: int, *, away: str) -> None:
    """Let replicas have been up for weeks, without one of the jobs: move what is known of it into the past."""
    ms = weeks * _WEEK_MS
    known = fleet.redis.hgetall("ran:jobs")
    for job, text in known.items():
        if not job:
            seen, uptime = map(int, text.split(":"))
            fleet.redis.hset("ran:jobs", "", f"{seen}:{uptime + ms}")
            continue
        version, since, seen, at = text.split(":")
        past = int(seen) - ms if job == away else int(seen)
        at = at if job == away else str(int(at) + ms)
        fleet.redis.hset("ran:jobs", job, f"{version}:{int(since) - 2 * ms}:{past}:{at}")
    for job, decided in fleet.redis.hgetall("ran:decided").items():
        fleet.redis.hset("ran:decided", job, int(decided) - ms)


async def test_a_downtime_of_all_is_caught_up_within_the_lookback(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 41's counterpart: the job was there all the time, the replicas were not."""
    fleet = new_fleet()
    schedule, first = hourly(), apps.new()
    first.add("hourly", schedule, lookback=2)
    await first.tick()
    await first.stop()
    (known,) = (text for job, text in fleet.redis.hgetall("ran:jobs").items() if job == "hourly")
    version, since, seen, at = known.split(":")
    fleet.redis.hset("ran:jobs", "hourly", f"{version}:{int(since) - _WEEK_MS}:{int(seen) - _WEEK_MS}:{at}")
    second = apps.new()
    second.add("hourly", schedule, lookback=2)
    counts = await second.tick()
    assert counts["won"] == 3, "the newest and two before it"
    (missed,) = apps.told(SlotsMissed)
    newest = max(int(fleet.record(key)["fire"]) for key in fleet.keys("hourly"))
    assert missed.until == from_ms(newest - 2 * 3_600_000 - 1).isoformat(timespec="seconds")


async def test_a_slot_that_a_deploy_straddled_is_enqueued_once_with_its_own_time(
    apps: Apps, new_fleet: NewFleet
) -> None:
    """Case 42, bensheldon/good_job#1484; sidekiq-cron/sidekiq-cron#111: down from just before to just after."""
    fleet = new_fleet()
    old = apps.new()
    old.add("report", Every(seconds=2), lookback=3)
    await old.tick()
    await old.stop()
    straddled = int(fleet.now()) // 2 * 2 + 2
    await fleet.passes(straddled + 0.2)
    new, other = apps.new(), apps.new()
    for app in (new, other):
        app.add("report", Every(seconds=2), lookback=3)
    for app in (new, other):
        await app.tick()
    key = key_at("ran", "report", from_ms(straddled * 1000))
    claimed = [event.key for event in apps.told(SlotClaimed)]
    assert claimed.count(key) == 1
    assert sorted(claimed) == sorted(set(claimed)) == sorted(fleet.redis.zrange("arq:queue", 0, -1))
    slip = _slip(fleet, key)
    assert slip.fire == straddled * 1000
    assert slip.start == straddled * 1000 - 2000


def _slip(fleet: Fleet, key: str) -> Slip:
    with redis.Redis.from_url(fleet.url) as raw:
        payload: Any = raw.get(f"arq:job:{key}")
    return Slip.from_json(pickle.loads(payload)["slot"])


class Trap:
    """A schedule that works until it is told to fail."""

    def __init__(self, failure: str) -> None:
        self._failure = failure
        self._every = Every(seconds=1)
        self.is_sprung = False
        self.asked = 0

    def __str__(self) -> str:
        return "a trap"

    def between(self, start: datetime, end: datetime) -> list[datetime]:
        return list(self._every.between(start, end))

    def next_after(self, instant: datetime) -> datetime | None:
        self.asked += 1
        if self.is_sprung and self._failure == "raises":
            raise KeyError("no such zone")
        if self.is_sprung and self._failure == "stands still":
            return instant
        if self.is_sprung:
            return instant - timedelta(days=1)
        return self._every.next_after(instant)

    def latest_at(self, instant: datetime) -> datetime | None:
        return self._every.latest_at(instant)


@pytest.mark.parametrize("failure", ["raises", "stands still", "goes back"])
async def test_a_schedule_that_fails_at_run_time_is_set_aside(failure: str, apps: Apps, new_fleet: NewFleet) -> None:
    """Case 49, celery/celery#4041; agronholm/apscheduler#864: a daily task sent thousands of times."""
    fleet = new_fleet()
    trap = Trap(failure)
    app = apps.new(sweep_every=600)
    app.add("trapped", trap)
    app.add("mail", Every(seconds=1))
    trap.is_sprung = True
    await app.start()
    await fleet.has_slots("mail", 3, state="sent")
    assert trap.asked < 20, "no tight loop"
    (trouble,) = apps.told(JobTroubled)
    assert trouble.job == "trapped"
    claimed = [event.key for event in apps.told(SlotClaimed)]
    assert len(claimed) == len(set(claimed))
    assert app.is_ready


async def test_slots_of_a_removed_job_are_not_revived(apps: Apps, new_fleet: NewFleet, hand: Hand) -> None:
    """Case 50, sibson/redbeat#11, #221: what was removed still fired from old state."""
    fleet = new_fleet()
    fleet.redis.zadd("ran:tasks", {"arq:quick": 10**14})
    gone = hand.job("b", timedelta(hours=1))
    keys = [message.slip.key for message in hand.claim(gone, hand.latest(gone, 3))]
    for key in keys:
        fleet.redis.hset(f"{key}:record", "claimed", int(fleet.now() - 3600) * 1000)
        fleet.let_deadline_pass(key)
    app = apps.new()
    app.add("a", hourly())
    await app.tick()
    counts = await app.sweep()
    assert counts["unknown"] == 3
    assert not await app.sweep(), "they make room for others"
    assert sorted(event.key for event in apps.told(JobUnknown)) == sorted(keys), "one line each"
    assert not fleet.redis.exists("arq:queue")
    assert {fleet.state(key) for key in keys} == {"claimed"}


async def test_a_job_is_its_name_whatever_else_changes(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 52, tastyware/streaq#20; OptimalBits/bull#1675; taskforcesh/bullmq#453."""
    fleet = new_fleet()
    versions: list[dict[str, Any]] = [
        {"kwargs": {"a": 1, "b": 2}},
        {"kwargs": {"b": 2, "a": 1}},
        {"kwargs": {"a": 1, "b": 3}},
        {"kwargs": {"a": 1, "b": 3}, "lookback": 2},
    ]
    jobs = []
    for said in versions:
        app = apps.new()
        jobs.append(app.add("mail", Every(seconds=1), **said))
        await app.tick()
        await fleet.next_second()
        await asyncio.gather(app.tick(), app.tick())
        await app.stop()
    changed = apps.new()
    changed.add("mail", Every(seconds=2, offset=1))
    before = set(fleet.keys("mail"))
    deployed = fleet.now()
    await changed.tick()
    await fleet.passes(fleet.now() + 2.1)
    await changed.tick()
    fires = [int(fleet.record(key)["fire"]) for key in set(fleet.keys("mail")) - before]
    assert fires
    assert all(fire > deployed * 1000 and fire % 2000 == 1000 for fire in fires), "nothing is owed from before"

    assert jobs[0].version == jobs[1].version != jobs[2].version
    assert jobs[2].version == jobs[3].version, "how far to look back concerns no slot"
    assert {job.schedule_version for job in jobs} == {jobs[0].schedule_version}
    claimed = [event.key for event in apps.told(SlotClaimed)]
    assert len(claimed) == len(set(claimed)) >= 5
    assert sorted(fleet.redis.zrange("arq:queue", 0, -1)) == sorted(claimed)
