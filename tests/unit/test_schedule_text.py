"""Schedules as text: one spelling that comes back as it was, and what people say."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotqueue import Cron, Every, InvalidSchedule
from slotqueue.schedule_text import parse_schedule, schedule_text


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 3 * * *", tz="Europe/Berlin"),
        Cron("*/5 8-18 * jan,feb mon-fri"),
        Cron("0 0 l * *", tz="UTC"),
        Cron("0 0 * * 1#2", tz="EST"),
        Cron("@daily", tz="America/Argentina/Buenos_Aires"),
        Cron("*/10 * * * * *", tz="Asia/Tokyo", seconds=True),
        Cron("0 0 0 13 * fri", seconds=True, both_days=True),
        Every(seconds=1),
        Every(minutes=5, offset=90),
        Every(days=3660),
    ],
    ids=str,
)
def test_a_schedule_comes_back_from_its_text(schedule: Cron | Every) -> None:
    found = parse_schedule(schedule_text(schedule))
    assert found == schedule
    assert str(found) == str(schedule)


@given(st.integers(1, 10_000_000), st.data())
def test_every_period_comes_back_from_its_text(seconds: int, data: st.DataObject) -> None:
    schedule = Every(seconds=seconds, offset=data.draw(st.integers(0, seconds - 1)))
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize(
    "text,schedule",
    [
        ("cron: 0 3 * * * Europe/Berlin", Cron("0 3 * * *", tz="Europe/Berlin")),
        ("CRON 0 3 * * mon-fri", Cron("0 3 * * MON-FRI")),
        ("cron @hourly", Cron("0 * * * *")),
        ("@daily Europe/Berlin", Cron("0 0 * * *", tz="Europe/Berlin")),
        ("@weekly", Cron("0 0 * * 0")),
        ("every 5 min", Every(minutes=5)),
        ("every: 1 h 30 min, offset 5 min", Every(minutes=90, offset=300)),
        ("every 0.5h", Every(minutes=30)),
        ("every 2 hrs 5 mins 30 secs", Every(hours=2, minutes=5, seconds=30)),
        ("every 90", Every(seconds=90)),
        ("  every   2 days  offset 1 hour ", Every(days=2, offset=timedelta(hours=1))),
    ],
)
def test_what_people_say_is_understood(text: str, schedule: Cron | Every) -> None:
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize(
    "text,problem",
    [
        ("", "is no schedule; right is a text like 'cron 0 3 * * * Europe/Berlin' or 'every 5 min'"),
        ("0 3 * * *", "is no schedule; put 'cron' in front: 'cron 0 3 * * *'"),
        ("0 3 * *", "is no schedule; right is"),
        ("cron", "has no expression"),
        ("cron 0 3 * *", "has 4 fields"),
        ("cron 0 3 * * * Europe/Berln", "'Europe/Berln' is no known time zone; did you mean 'Europe/Berlin'"),
        ("cron 61 3 * * *", "bad minute '61'"),
        ("cron 0 0 31 2 *", "never fires: no month of '2' has a day-of-month '31'"),
        ("@fortnightly", "names no fire times"),
        ("every", "says no length of time"),
        ("every minute", "says no length of time"),
        ("every 5 m", "says no length of time"),
        ("every 5 min 5 min", "says no length of time"),
        ("every 5 min offset", "says no length of time"),
        ("every 0 s", "out of range"),
        ("every 1.5 s", "whole seconds"),
        ("every 5 min offset 5 min", "is not below the period"),
        ("every 99999999999999999999 days", "says no length of time"),
        (5, "is no text of a schedule"),
    ],
)
def test_what_is_no_schedule_is_refused_with_what_would_be_right(text: str, problem: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse_schedule(text)
    assert problem in str(caught.value)


def test_a_schedule_that_is_code_has_no_text() -> None:
    with pytest.raises(InvalidSchedule, match="cannot be stored"):
        schedule_text(object())
