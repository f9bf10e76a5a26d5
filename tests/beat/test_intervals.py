"""Intervals on the epoch grid, relative ones on local time, and schedule objects by their own rule."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import celery
import pytest
from celery.schedules import BaseSchedule, schedstate, schedule, solar

from slotqueue import ConfigurationError, Every
from slotqueue.beat.entries import schedule_of
from slotqueue.beat.own_rule import OwnRule
from slotqueue.protocols import Schedule

DAY = timedelta(days=1)
NOON = datetime(2026, 10, 24, 12, tzinfo=UTC)


def app_in(zone: str = "UTC") -> celery.Celery:
    app = celery.Celery(set_as_current=False, broker="redis://localhost")
    app.conf.timezone = zone
    return app


def read(rule: Any, zone: str = "UTC") -> Schedule:
    return schedule_of(rule, app_in(zone))


def interval(seconds: float, zone: str = "UTC", *, relative: bool = False) -> Schedule:
    return read(schedule(timedelta(seconds=seconds), relative=relative), zone)


def assert_sound(times: Schedule, start: datetime, end: datetime, *, points: int = 40) -> None:
    """The fire times are a pure function, half-open, and the three methods agree."""
    fires = list(times.between(start, end))
    assert fires
    assert all(a < b for a, b in pairwise(fires))
    assert not any(each.microsecond for each in fires)
    for _ in range(points):
        at = start + (end - start) * random.random()
        assert [*times.between(start, at), *times.between(at, end)] == fires
        later, earlier = [each for each in fires if each > at], [each for each in fires if each <= at]
        if later:
            assert times.next_after(at) == later[0]
        if earlier:
            assert times.latest_at(at) == earlier[-1]
    assert times.latest_at(fires[-1]) == fires[-1]


def test_an_interval_lies_on_the_epoch_grid_whenever_beat_was_started() -> None:
    assert interval(30) == Every(seconds=30)
    assert interval(7 * 3600) == Every(hours=7)


def test_a_fractional_interval_fires_at_the_first_whole_second_of_its_grid() -> None:
    half = interval(1.5)
    minute = datetime(2026, 1, 1, tzinfo=UTC)
    found = [each.second for each in half.between(minute, minute + timedelta(seconds=9))]
    assert found == [0, 2, 3, 5, 6, 8]
    for seconds in (1.5, 1.001, 2.25, 59.999999):
        assert_sound(interval(seconds), NOON, NOON + timedelta(seconds=seconds * 50))


@pytest.mark.parametrize("seconds", [0.999, 0.1, 0, -5])
def test_an_interval_below_a_second_is_refused(seconds: float) -> None:
    with pytest.raises(
        ConfigurationError, match="is below a second, and a slot is named by its second; use 1 s or more"
    ):
        interval(seconds)


def test_relative_days_fire_at_local_midnight() -> None:
    daily = interval(86400, "Europe/Berlin", relative=True)
    found = [each.isoformat() for each in daily.between(NOON, NOON + 3 * DAY)]
    assert found == ["2026-10-24T22:00:00+00:00", "2026-10-25T23:00:00+00:00", "2026-10-26T23:00:00+00:00"]
    third = interval(3 * 86400, "Europe/Berlin", relative=True)
    assert_sound(third, NOON, NOON + 40 * DAY)
    assert len(list(third.between(NOON, NOON + 30 * DAY))) == 10


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Havana", "America/Sao_Paulo"])
def test_relative_days_bear_midnights_that_are_skipped_or_come_twice(zone: str) -> None:
    assert_sound(
        interval(86400, zone, relative=True), datetime(2011, 10, 1, tzinfo=UTC), datetime(2012, 3, 1, tzinfo=UTC)
    )


def test_relative_hours_fire_at_the_full_hour_of_the_zone() -> None:
    fires = list(interval(7200, "Asia/Kolkata", relative=True).between(NOON, NOON + DAY))
    local = [each.astimezone(ZoneInfo("Asia/Kolkata")) for each in fires]
    assert len(fires) == 12
    assert {each.minute for each in local} == {0}


def test_relative_rounds_the_period_down_to_its_unit_as_celery_does() -> None:
    rule = schedule(timedelta(minutes=90), relative=True, app=app_in(), nowfun=lambda: NOON)
    assert rule.remaining_estimate(NOON) == timedelta(hours=1)  # Celery's own reading
    assert interval(5400, relative=True) == Every(hours=1)
    assert interval(90, relative=True) == Every(minutes=1)


def test_solar_events_are_the_same_slots_for_every_beat() -> None:
    """ephem's answer depends on the point of asking by a tenth of a second; ours may not, or two beats send twice."""
    pytest.importorskip("ephem", reason="ephem is not installed here")
    sunset = read(solar("sunset", 52.5, 13.4))
    assert isinstance(sunset, OwnRule)
    start, end = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)
    fires = list(sunset.between(start, end))
    assert len(fires) == 61
    for fire in fires:
        assert {sunset.next_after(fire - timedelta(hours=random.uniform(0, 23))) for _ in range(10)} == {fire}
    assert_sound(sunset, start, start + 14 * DAY, points=5)


def test_celerys_own_answer_about_the_sun_depends_on_when_it_is_asked() -> None:
    """Why ours is settled from a point that all beats share."""
    pytest.importorskip("ephem", reason="ephem is not installed here")
    now = NOON
    rule = solar("sunset", 52.5, 13.4, app=app_in(), nowfun=lambda: now)
    answers = set()
    for minutes in range(0, 240, 10):
        now = NOON + timedelta(minutes=minutes)
        answers.add(now + rule.remaining_estimate(now))
    assert len(answers) > 1
    assert max(answers) - min(answers) < timedelta(seconds=1)


def test_a_schedule_object_runs_by_its_own_rule() -> None:
    class Fridays(BaseSchedule):  # type: ignore[misc]
        """Due at 13:00 on Fridays; knows `is_due` only."""

        def is_due(self, last_run_at: datetime) -> Any:
            now = self.now()
            today = now.replace(hour=13, minute=0, second=0, microsecond=0)
            friday = today + timedelta(days=(4 - now.weekday()) % 7)
            is_due = now.weekday() == 4 and last_run_at < today <= now
            following = friday if friday > now else friday + timedelta(days=7)
            return schedstate(is_due, (following - now).total_seconds())

    fridays = read(Fridays(), "Europe/Berlin")
    found = [f"{each:%m-%dT%H}" for each in fridays.between(NOON, NOON + 21 * DAY)]
    assert found == ["10-30T12", "11-06T12", "11-13T12"]
    assert_sound(fridays, NOON, NOON + 60 * DAY, points=10)


def test_a_rule_that_counts_from_its_last_run_is_refused() -> None:
    class EverySoOften(BaseSchedule):  # type: ignore[misc]
        def is_due(self, last_run_at: datetime) -> Any:
            left = (last_run_at + timedelta(minutes=7) - self.now()).total_seconds()
            return schedstate(left <= 0, left if left > 0 else 420.0)

    with pytest.raises(ConfigurationError, match="counts from its last run, so that each beat would have slots of its"):
        read(EverySoOften())


def test_what_is_no_schedule_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is no schedule; use a number of seconds, a timedelta, crontab"):
        read("every minute")


def test_a_schedule_object_says_which_one_it_is() -> None:
    pytest.importorskip("ephem", reason="ephem is not installed here")
    texts = {str(read(solar(event, 52.5, 13.4))) for event in ("sunset", "sunrise")}
    assert texts == {str(read(solar(event, 52.5, 13.4))) for event in ("sunset", "sunrise")}
    assert len(texts) == 2
