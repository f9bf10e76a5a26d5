"""Celery's `crontab` as `Cron`: away from clock changes they fire alike, at clock changes Debian's rule holds."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import celery
import pytest
from celery.schedules import crontab

from slotqueue import ConfigurationError, Cron
from slotqueue.beat.crontab import cron_of
from slotqueue.beat.entries import schedule_of
from slotqueue.beat.own_rule import OwnRule


@cache
def app_in(zone: str = "UTC") -> celery.Celery:
    app = celery.Celery(set_as_current=False, broker="redis://localhost")
    app.conf.timezone = zone
    return app


def translated(zone: str = "UTC", **fields: Any) -> Cron:
    cron = cron_of(crontab(app=app_in(zone), **fields))
    assert cron is not None
    return cron


def beats_next(rule: crontab, last: datetime) -> datetime:
    """When Celery's own rule says that an entry which ran at `last` is due."""
    local = last.astimezone(rule.tz)  # as beat keeps it
    rule.nowfun = lambda: local
    next_run: datetime = last + rule.remaining_estimate(local)
    return next_run.astimezone(UTC)


# ---- the same wall times as Celery's own


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
MONTHS = ("jan", "february", "Mar", "dec", "6")
DAYS = ("sun", "monday", "Tue", "sat", "3")


def any_field(chance: random.Random, first: int, last: int, names: tuple[str, ...] = ()) -> Any:
    """Something that Celery takes in a field: a number, a set, a list, or text with lists, ranges, steps and names."""

    def word() -> str:
        return chance.choice(names) if names else str(chance.randint(first, last))

    def part() -> str:
        step = chance.randint(1, last + 1)
        span = f"{word()}-{word()}"
        return chance.choice((word(), span, f"{span}/{step}", f"*/{step}"))

    numbers = [chance.randint(first, last) for _ in range(chance.randint(1, 6))]
    text = ",".join(part() for _ in range(chance.randint(1, 3)))
    return chance.choice(("*", "*", numbers[0], text, text, set(numbers), numbers))


def any_crontab(chance: random.Random) -> dict[str, Any]:
    return {
        "minute": any_field(chance, 0, 59),
        "hour": any_field(chance, 0, 23),
        "day_of_month": any_field(chance, 1, 31),
        "month_of_year": any_field(chance, 1, 12, MONTHS),
        "day_of_week": any_field(chance, 0, 6, DAYS),
    }


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(4))
def test_away_from_clock_changes_it_fires_exactly_when_celerys_own_crontab_does(part: int) -> None:
    seed = int(os.environ.get("SLOTQUEUE_TEST_SEED", random.SystemRandom().randrange(10**6))) + part
    chance, compared = random.Random(seed), 0
    while compared < 750:
        fields, zone = any_crontab(chance), chance.choice(ZONES)
        instant = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.uniform(0, 10 * 365 * 86_400))
        try:
            rule = crontab(app=app_in(zone), **fields)
            cron = cron_of(rule)
        except ValueError:  # days that no month has, which Celery refuses, or that never come together: it searches on
            continue
        assert cron is not None
        ours = cron.next_after(instant)
        assert ours is not None
        if _is_calm(ZoneInfo(zone), ours):
            assert ours == beats_next(rule, instant), (fields, zone, instant, f"SLOTQUEUE_TEST_SEED={seed - part}")
            compared += 1


def _is_calm(zone: ZoneInfo, instant: datetime) -> bool:
    """Whether no clock change is within two days: there the two differ on purpose."""
    around = [(instant + timedelta(hours=hours)).astimezone(zone).utcoffset() for hours in (-48, 0, 48)]
    return len(set(around)) == 1


def test_a_date_must_match_both_days_as_in_celery() -> None:
    cron = translated(minute=0, hour=0, day_of_month="1-7", day_of_week="mon")
    fires = cron.between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC))
    assert [f"{each:%m-%d}" for each in fires] == ["01-05", "02-02", "03-02", "04-06"]


@pytest.mark.parametrize(
    "fields, expression",
    [
        ({}, "* * * * *"),
        ({"minute": "*/30", "hour": 2}, "*/30 2 * * *"),
        ({"minute": "0-59/30", "hour": "2"}, "0,30 2 * * *"),
        ({"minute": [0, 30], "hour": {2}}, "0,30 2 * * *"),
        ({"minute": "*/20,5", "hour": "*/24"}, "*/20,0,5,20,40 */24 * * *"),
        ({"minute": 0, "hour": 22, "day_of_week": "fri-mon"}, "0 22 * * 0,1,5,6"),
        ({"minute": 0, "hour": 0, "month_of_year": "nov-feb", "day_of_month": "*/10"}, "0 0 1,11,21,31 1,2,11,12 *"),
    ],
)
def test_a_leading_star_is_kept_and_the_rest_is_spelled_out(fields: dict[str, Any], expression: str) -> None:
    assert translated(**fields).expression == expression


# ---- clock changes: cases 23 and 24, with beat's crontabs


def fires(zone: str, start: str, end: str, **fields: Any) -> list[str]:
    """Fire times in [start, end) as `MM-DDTHH:MM`, UTC."""
    between = translated(zone, **fields).between(datetime.fromisoformat(start), datetime.fromisoformat(end))
    return [f"{each:%m-%dT%H:%M}" for each in between]


def test_a_time_inside_the_spring_gap_fires_at_the_first_minute_after_it() -> None:
    new_york = "America/New_York", "2026-03-07T00:00Z", "2026-03-11T00:00Z"
    assert fires(*new_york, minute=30, hour=2) == ["03-07T07:30", "03-08T07:00", "03-09T06:30", "03-10T06:30"]
    berlin = "Europe/Berlin", "2026-03-28T00:00Z", "2026-03-31T00:00Z"
    assert fires(*berlin, minute=30, hour=2) == ["03-28T01:30", "03-29T01:00", "03-30T00:30"]
    sundays = "Europe/Berlin", "2026-03-22T00:00Z", "2026-04-06T00:00Z"
    assert fires(*sundays, minute=0, hour=2, day_of_week="sun") == ["03-22T01:00", "03-29T01:00", "04-05T00:00"]
    gap = "America/New_York", "2026-03-08T06:59:01Z", "2026-03-08T07:04Z"
    assert fires(*gap, minute="*/5") == ["03-08T07:00"]


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"minute": "*/30", "hour": 2}, []),
        ({"hour": "2"}, []),
        ({"minute": "0-59/30", "hour": 2}, ["07:00"]),
        ({"minute": 5, "hour": "2-4"}, ["07:00", "07:05", "08:05"]),
        ({"minute": [30], "hour": [1, 2, 3]}, ["06:30", "07:00", "07:30"]),
        ({"minute": "0,30", "hour": 2}, ["07:00"]),
        ({"minute": 0, "hour": {2, 3}}, ["07:00"]),
        ({"minute": 0, "hour": "*/2"}, ["08:00"]),
    ],
)
def test_a_wildcard_vanishes_in_the_gap_and_a_fixed_time_does_not(fields: dict[str, Any], expected: list[str]) -> None:
    found = fires("America/New_York", "2026-03-08T06:00Z", "2026-03-08T09:00Z", **fields)
    assert [each[6:] for each in found] == expected


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"minute": "*/30", "hour": 1}, ["05:00", "05:30", "06:00", "06:30"]),
        ({"minute": "0-59/30", "hour": 1}, ["05:00", "05:30"]),
        ({"minute": 0, "hour": "*/2"}, ["04:00", "07:00"]),
        ({"minute": 0}, ["04:00", "05:00", "06:00", "07:00"]),
    ],
)
def test_a_wildcard_fires_on_both_passes_of_the_fold_and_a_fixed_time_on_the_first(
    fields: dict[str, Any], expected: list[str]
) -> None:
    found = fires("America/New_York", "2026-11-01T04:00Z", "2026-11-01T08:00Z", **fields)
    assert [each[6:] for each in found] == expected
    everything = fires("America/New_York", "2026-11-01T04:00Z", "2026-11-01T08:00Z", hour=1)
    assert len(everything) == 120


def test_celerys_own_crontab_means_something_else_there() -> None:
    """Why we translate: the facts that the docs rely on."""
    berlin = ZoneInfo("Europe/Berlin")
    spring = crontab(minute=30, hour=2, app=app_in("Europe/Berlin"))
    assert beats_next(spring, datetime(2026, 3, 28, 12, tzinfo=berlin)) != datetime(2026, 3, 29, 1, tzinfo=UTC)


# ---- what cannot be translated


def test_a_crontab_of_ones_own_runs_by_its_own_rule() -> None:
    class Workdays(crontab):  # type: ignore[misc]
        def is_due(self, last_run_at: datetime) -> Any:
            due, wait = super().is_due(last_run_at)
            return due and self.now().weekday() < 5, wait

    schedule = schedule_of(Workdays(minute=0, hour=9), app_in())
    assert isinstance(schedule, OwnRule)
    friday = datetime(2026, 10, 2, 9, tzinfo=UTC)
    assert schedule.next_after(friday) == friday + timedelta(days=3)
    assert schedule.latest_at(friday + timedelta(days=2)) == friday


def test_a_crontab_with_a_clock_of_its_own_runs_by_its_own_rule() -> None:
    rule = crontab(minute=0, hour=9, nowfun=lambda: datetime.now(ZoneInfo("Asia/Tokyo")))
    assert isinstance(schedule_of(rule, app_in()), OwnRule)


def test_an_empty_field_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a field of its crontab is empty, so it never runs"):
        schedule_of(crontab(minute=[]), app_in())


def test_days_that_never_come_together_are_refused() -> None:
    rule = crontab(minute=0, hour=0, day_of_month="29", month_of_year="2", day_of_week="*")
    assert isinstance(schedule_of(rule, app_in()), Cron)
    with pytest.raises(ValueError, match=r"never (occurs|fires)"):  # the first is Celery's own refusal from 5.7 on
        schedule_of(crontab(minute=0, hour=0, day_of_month="31", month_of_year="2"), app_in())
