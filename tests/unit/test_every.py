"""Intervals: a grid on the Unix epoch that no restart and no clock change moves."""

from __future__ import annotations

import copy
import math
import pickle
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from slotqueue.errors import InvalidSchedule
from slotqueue.schedules import Every


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


GRIDS = [
    (
        Every(hours=7),
        "2026-11-30T00:00",
        ["11-30T02:00:00", "11-30T09:00:00", "11-30T16:00:00", "11-30T23:00:00", "12-01T06:00:00"],
    ),
    (
        Every(hours=5),
        "2026-11-30T00:00",
        ["11-30T02:00:00", "11-30T07:00:00", "11-30T12:00:00", "11-30T17:00:00", "11-30T22:00:00"],
    ),
    (Every(minutes=90), "2026-11-30T00:00", ["11-30T00:00:00", "11-30T01:30:00", "11-30T03:00:00"]),
    (Every(seconds=45), "2026-11-30T00:00", ["11-30T00:00:00", "11-30T00:00:45", "11-30T00:01:30"]),
    (Every(days=7), "2026-11-30T00:00", ["12-03T00:00:00", "12-10T00:00:00"]),
    (Every(minutes=10, offset=60), "2026-11-30T00:00", ["11-30T00:01:00", "11-30T00:11:00"]),
]


@pytest.mark.parametrize("every, start, expected", GRIDS)
def test_the_grid_stands_on_the_epoch(every: Every, start: str, expected: list[str]) -> None:
    found = list(islice(every.between(at(start), at("2027-01-01")), len(expected)))
    assert [f"{fire:%m-%dT%H:%M:%S}" for fire in found] == expected
    assert all(fire.tzinfo is UTC for fire in found)


@pytest.mark.parametrize("started", ["2026-11-30T00:03", "2026-11-30T05:17", "2026-11-30T06:00", "2026-11-30T08:59:59"])
def test_replicas_agree_whenever_they_started(started: str) -> None:
    ahead = list(Every(hours=7).between(at(started), at("2026-12-01T07:00")))
    assert ahead == list(Every(hours=7).between(at("2026-11-30"), at("2026-12-01T07:00")))[-len(ahead) :]
    assert ahead[-1] == at("2026-12-01T06:00")


def test_a_wait_through_the_end_of_summer_time_is_even() -> None:
    zone = ZoneInfo("America/Los_Angeles")
    start, end = at("2022-11-06T08:00").astimezone(zone), at("2022-11-06T10:00").astimezone(zone)
    expected = [at("2022-11-06T08:00") + index * timedelta(minutes=10) for index in range(12)]
    assert list(Every(minutes=10).between(start, end)) == expected
    stepped = [Every(minutes=10).next_after((fire - timedelta(seconds=1)).astimezone(zone)) for fire in expected]
    assert stepped == expected


def test_next_is_strictly_later_and_latest_may_be_now() -> None:
    every, now = Every(minutes=5), at("2026-06-01T00:05")
    assert every.next_after(now) == at("2026-06-01T00:10")
    assert every.latest_at(now) == now
    just_before = now - timedelta(microseconds=1)
    assert every.next_after(just_before) == now
    assert every.latest_at(just_before) == at("2026-06-01T00:00")


def test_between_holds_its_start_and_not_its_end() -> None:
    every = Every(minutes=5)
    assert list(every.between(at("2026-06-01"), at("2026-06-01T00:10"))) == [at("2026-06-01"), at("2026-06-01T00:05")]
    assert list(every.between(at("2026-06-01"), at("2026-06-01"))) == []
    assert list(every.between(at("2026-06-02"), at("2026-06-01"))) == []


def test_the_grid_goes_on_before_the_epoch() -> None:
    assert Every(hours=7).latest_at(at("1969-12-31T23:00")) == at("1969-12-31T17:00")


def test_a_millionth_slot_is_exact() -> None:
    assert next(Every(seconds=3).between(at("1970-01-01") + timedelta(seconds=3 * 10**6), at("2000-01-01"))) == (
        at("1970-01-01") + timedelta(seconds=3 * 10**6)
    )


def test_a_huge_gap_is_arithmetic() -> None:
    every, start, end = Every(seconds=1), at("0002-01-01"), at("9999-01-01")
    begun = time.process_time()
    assert next(iter(every.between(start, end))) == start
    assert every.last_between(start, end, 2) == [end - timedelta(seconds=2), end - timedelta(seconds=1)]
    assert time.process_time() - begun < 0.1


def test_the_newest_are_bounded_by_count_and_by_the_start() -> None:
    every, start, end = Every(minutes=5), at("2026-06-01T00:01"), at("2026-06-01T00:15")
    assert every.last_between(start, end, 9) == [at("2026-06-01T00:05"), at("2026-06-01T00:10")]
    assert every.last_between(start, end, 1) == [at("2026-06-01T00:10")]
    assert every.last_between(start, end, 0) == every.last_between(start, end, -1) == []
    assert every.last_between(end, start, 9) == []


def test_the_ends_of_the_range_of_datetime_are_answered_with_none() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for every in (Every(seconds=1), Every(days=3000, offset=7)):
        newest = every.latest_at(last)
        assert newest is not None
        assert every.next_after(newest) is None
        assert every.next_after(last) is None
        assert every.latest_at(first) is None
        assert every.last_between(first, last, 1) == [newest]


@pytest.mark.parametrize(
    "every",
    [
        Every(timedelta(minutes=5)),
        Every(300),
        Every(300.0),
        Every(seconds=300),
        Every(minutes=4, seconds=60),
        Every(hours=1 / 12),
    ],
)
def test_a_period_may_be_said_in_several_ways(every: Every) -> None:
    assert every == Every(minutes=5)
    assert hash(every) == hash(Every(minutes=5))
    assert every.period == timedelta(minutes=5)
    assert str(every) == "every 300s"


def test_decimal_fractions_of_larger_units_are_whole_seconds() -> None:
    assert Every(hours=1.1).period == timedelta(seconds=3960)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"period": 0},
        {"period": 0.1},
        {"period": 0.999},
        {"period": 1.5},
        {"period": timedelta(milliseconds=1500)},
        {"period": -5},
        {"period": timedelta(seconds=-5)},
        {"period": math.nan},
        {"period": math.inf},
        {"period": -math.inf},
        {"period": 10**12},
        {"period": 10**400},
        {"period": timedelta.max},
        {"period": timedelta(days=3661)},
        {"period": True},
        {"period": "5m"},
        {"period": Decimal(5)},
        {"period": 60, "minutes": 1},
        {"minutes": math.nan},
        {"hours": True},
        {"hours": 1, "minutes": -5},
        {"days": 10**30},
        {"days": None},
        {"minutes": 5, "offset": 300},
        {"minutes": 5, "offset": -1},
        {"minutes": 5, "offset": 0.5},
        {"minutes": 5, "offset": math.nan},
        {"minutes": 5, "offset": True},
        {"minutes": 5, "offset": None},
        {"minutes": 5, "offset": timedelta(days=1)},
    ],
    ids=str,
)
def test_what_is_no_interval_is_refused_with_what_would_be_right(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule, match=r"right (is|are)") as caught:
        Every(**wrong)
    assert caught.value.argument is not None
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("period", [1, timedelta(seconds=1), timedelta(days=3660)])
def test_the_shortest_and_the_longest_period_are_accepted(period: timedelta | int) -> None:
    assert Every(period).next_after(at("2026-01-01")) is not None


@pytest.mark.parametrize(
    "every, text, identity",
    [
        (Every(300), "Every(minutes=5)", "every 300s"),
        (Every(90), "Every(seconds=90)", "every 90s"),
        (Every(hours=48), "Every(days=2)", "every 172800s"),
        (Every(hours=1, offset=timedelta(minutes=5)), "Every(hours=1, offset=300)", "every 3600s offset 300s"),
    ],
)
def test_the_repr_builds_the_schedule_again_and_the_text_identifies_it(every: Every, text: str, identity: str) -> None:
    assert repr(every) == text
    assert eval(text) == every
    assert str(every) == identity


def test_an_interval_is_an_immutable_value_that_can_be_copied_and_pickled() -> None:
    every = Every(hours=1, offset=5)
    with pytest.raises(AttributeError):
        every.period = timedelta(1)  # type: ignore[misc]
    assert copy.deepcopy(every) == pickle.loads(pickle.dumps(every)) == every
    assert every != Every(hours=1)
