"""Cron across changes of the clocks: the exact lists, the same under every zone of the host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slotqueue.schedules import Cron

NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"
EACH_MINUTE_OF_BOTH_PASSES = [f"11-01T{hour:02}:{minute:02}" for hour in (5, 6) for minute in range(60)]
SPRING = ("2026-03-08T06:00", "2026-03-08T09:00")
AUTUMN = ("2026-11-01T04:00", "2026-11-01T08:00")

# expression, zone, start, end, fire times in UTC
LISTS: list[tuple[str, str, str, str, list[str]]] = [
    # celery/celery#10107: the fold has two passes, and both hold slots
    (
        "0 * * * *",
        NEW_YORK,
        "2026-11-01T04:00",
        "2026-11-01T10:00",
        ["11-01T04:00", "11-01T05:00", "11-01T06:00", "11-01T07:00", "11-01T08:00", "11-01T09:00"],
    ),
    (
        "0 * * * *",
        "Europe/London",
        "2026-10-24T23:00",
        "2026-10-25T04:00",
        ["10-24T23:00", "10-25T00:00", "10-25T01:00", "10-25T02:00", "10-25T03:00"],
    ),
    (
        "*/15 * * * *",
        NEW_YORK,
        "2026-11-01T05:00",
        "2026-11-01T07:30",
        [f"11-01T{hour:02}:{minute:02}" for hour in (5, 6, 7) for minute in (0, 15, 30, 45)][:10],
    ),
    # kubernetes/kubernetes#121594: a daily job ran twice in autumn
    ("0 2 * * *", BERLIN, "2026-10-24", "2026-10-27", ["10-24T00:00", "10-25T00:00", "10-26T01:00"]),
    ("30 1 * * *", NEW_YORK, "2026-10-31", "2026-11-03", ["10-31T05:30", "11-01T05:30", "11-02T06:30"]),
    # node-cron#518, quartz#51, apscheduler#1059, Cronos#36: inside the gap
    ("30 2 * * *", NEW_YORK, "2026-03-07", "2026-03-11", ["03-07T07:30", "03-08T07:00", "03-09T06:30", "03-10T06:30"]),
    ("30 2 * * *", BERLIN, "2026-03-28", "2026-03-31", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
    ("0 2 * * 0", BERLIN, "2026-03-22", "2026-04-06", ["03-22T01:00", "03-29T01:00", "04-05T00:00"]),
    ("30 2 * * *", NEW_YORK, "2026-03-08T06:50", "2026-03-08T07:10", ["03-08T07:00"]),
    # cron-plus#108: WILDCARD and FIXED
    ("*/30 2 * * *", NEW_YORK, *SPRING, []),
    ("* 2 * * *", NEW_YORK, *SPRING, []),
    ("0-59/30 2 * * *", NEW_YORK, *SPRING, ["03-08T07:00"]),
    ("5 2-4 * * *", NEW_YORK, *SPRING, ["03-08T07:00", "03-08T07:05", "03-08T08:05"]),
    ("30 1-3 * * *", NEW_YORK, *SPRING, ["03-08T06:30", "03-08T07:00", "03-08T07:30"]),
    ("0,30 2 * * *", NEW_YORK, *SPRING, ["03-08T07:00"]),
    ("0 2,3 * * *", NEW_YORK, *SPRING, ["03-08T07:00"]),
    ("0 */2 * * *", NEW_YORK, "2026-03-08T05:00", "2026-03-08T12:00", ["03-08T05:00", "03-08T08:00", "03-08T10:00"]),
    ("*/30 1 * * *", NEW_YORK, *AUTUMN, ["11-01T05:00", "11-01T05:30", "11-01T06:00", "11-01T06:30"]),
    ("0-59/30 1 * * *", NEW_YORK, *AUTUMN, ["11-01T05:00", "11-01T05:30"]),
    ("* 1 * * *", NEW_YORK, *AUTUMN, EACH_MINUTE_OF_BOTH_PASSES),
    ("0 */2 * * *", NEW_YORK, *AUTUMN, ["11-01T04:00", "11-01T07:00"]),
    # apscheduler#606, cron-expression#220, cronie#218: a day of 23 hours
    ("0 0 * * *", "US/Pacific", "2022-03-12T12:00", "2022-03-16", ["03-13T08:00", "03-14T07:00", "03-15T07:00"]),
    ("0 0 * * *", "Europe/Prague", "2026-03-28T23:30", "2026-03-29T23:00", ["03-29T22:00"]),
    ("0 0 * * 0-4", NEW_YORK, "2026-03-08T05:00", "2026-03-10T05:00", ["03-08T05:00", "03-09T04:00", "03-10T04:00"]),
    ("0 8 * * 0", "America/Chicago", "2026-03-08T05:45", "2026-03-16", ["03-08T13:00", "03-15T13:00"]),
    ("0 12 * * 0", BERLIN, "2022-03-24T11:00", "2022-03-28", ["03-27T10:00"]),
    # django-celery-beat#134, celery#9653, cronie#217: a stale offset
    ("4 16 * * *", NEW_YORK, "2025-03-08", "2025-03-11", ["03-08T21:04", "03-09T20:04", "03-10T20:04"]),
    ("* * * */3 *", NEW_YORK, "2015-02-15T05:00", "2015-04-01T04:02", ["04-01T04:00", "04-01T04:01"]),
    # cronie#124, node-cron#174: the clock changes of the host are not those of the schedule
    ("30 1 * * *", "UTC", "2022-10-29", "2022-11-01", ["10-29T01:30", "10-30T01:30", "10-31T01:30"]),
    ("30 1 * * *", "Asia/Tokyo", "2022-10-29", "2022-11-01", ["10-29T16:30", "10-30T16:30", "10-31T16:30"]),
    # half and quarter hours
    ("0 9 * * *", "Asia/Kolkata", "2026-06-01", "2026-06-03", ["06-01T03:30", "06-02T03:30"]),
    (
        "0 * * * *",
        "Asia/Kolkata",
        "2026-06-01T00:00",
        "2026-06-01T04:00",
        ["06-01T00:30", "06-01T01:30", "06-01T02:30", "06-01T03:30"],
    ),
    ("30 0 * * *", "Asia/Kathmandu", "2026-06-01", "2026-06-03", ["06-01T18:45", "06-02T18:45"]),
    ("0 0 1 * *", "Asia/Kolkata", "2026-02-01", "2026-04-02", ["02-28T18:30", "03-31T18:30"]),
]


def fires(expression: str, tz: str, start: str, end: str) -> list[str]:
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    return [f"{fire:%m-%dT%H:%M}" for fire in Cron(expression, tz).between(first, last)]


@pytest.mark.parametrize("expression, tz, start, end, expected", LISTS)
def test_the_fire_times_around_a_clock_change_are_exactly_these(
    expression: str, tz: str, start: str, end: str, expected: list[str]
) -> None:
    assert fires(expression, tz, start, end) == expected


@pytest.mark.parametrize("expression, tz, start, end, expected", LISTS)
def test_six_fields_mean_what_five_mean(expression: str, tz: str, start: str, end: str, expected: list[str]) -> None:
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    found = Cron(f"0 {expression}", tz, seconds=True).between(first, last)
    assert [f"{fire:%m-%dT%H:%M}" for fire in found] == expected


@pytest.mark.parametrize(
    "expression, tz, asked, expected",
    [
        ("30 1 * * *", NEW_YORK, "2026-11-01T05:45", "2026-11-02T06:30"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T06:10", "2026-11-02T06:30"),
        ("*/5 * * * *", NEW_YORK, "2026-03-08T06:59", "2026-03-08T07:00"),
        ("0 * * * *", NEW_YORK, "2026-03-08T06:30", "2026-03-08T07:00"),
        ("0 0 * * *", "Europe/Prague", "2026-03-28T23:30", "2026-03-29T22:00"),
        ("* * * */3 *", NEW_YORK, "2015-02-15T05:00", "2015-04-01T04:00"),
    ],
)
def test_the_next_fire_time_is_the_same_for_a_process_that_starts_in_the_middle(
    expression: str, tz: str, asked: str, expected: str
) -> None:
    found = Cron(expression, tz).next_after(datetime.fromisoformat(asked).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "expression, start, end, expected",
    [
        # Spring: 02:00 becomes 02:30. cronsim steps over the 03:00 of a wildcard.
        ("0 */3 * * *", "2026-10-03T13:00", "2026-10-03T20:00", ["10-03T13:30", "10-03T16:00", "10-03T19:00"]),
        ("15 2 * * *", "2026-10-03T15:00", "2026-10-03T17:00", ["10-03T15:30"]),
        ("*/15 2 * * *", "2026-10-03T15:00", "2026-10-03T17:00", ["10-03T15:30", "10-03T15:45"]),
        # Autumn: 02:00 becomes 01:30 again.
        ("0 */2 * * *", "2026-04-04T13:00", "2026-04-04T18:00", ["04-04T13:00", "04-04T15:30", "04-04T17:30"]),
        ("45 1 * * *", "2026-04-04T13:00", "2026-04-04T18:00", ["04-04T14:45"]),
        ("45 * * * *", "2026-04-04T14:00", "2026-04-04T16:30", ["04-04T14:45", "04-04T15:15", "04-04T16:15"]),
    ],
)
def test_a_shift_of_half_an_hour_follows_the_same_rule(
    expression: str, start: str, end: str, expected: list[str]
) -> None:
    assert fires(expression, "Australia/Lord_Howe", start, end) == expected


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("0 12 * * *", ["12-29T22:00", "12-30T10:00", "12-30T22:00"]),
        ("0 0 30 12 *", ["12-30T10:00"]),
        ("0 */12 * * *", ["12-29T10:00", "12-29T22:00", "12-30T10:00", "12-30T22:00"]),
    ],
)
def test_a_day_that_a_zone_skips_is_a_long_gap(expression: str, expected: list[str]) -> None:
    assert fires(expression, "Pacific/Apia", "2011-12-29T10:00", "2011-12-31T10:00") == expected


def test_a_gap_that_ends_off_the_minute_is_left_at_the_next_whole_one() -> None:
    """Monrovia went from 00:00:00 to 00:44:30 on 1972-01-07."""
    assert fires("10,20 0 * * *", "Africa/Monrovia", "1972-01-06T12:00", "1972-01-07T12:00") == ["01-07T00:45"]


def test_a_fold_of_half_an_hour_at_midnight_does_not_catch_the_search() -> None:
    """Colombo went from 00:30 back to 00:00 on 2006-04-15; cronsim, asked in that zone, never returns."""
    expected = ["04-13T20:00", "04-13T20:30", "04-14T20:30", "04-14T21:00"]
    assert fires("*/30 2 * * *", "Asia/Colombo", "2006-04-13T12:00", "2006-04-15T12:00") == expected


PROGRAM = """
import json, sys
from datetime import UTC, datetime
from slotqueue.schedules import Cron
answers = []
for expression, tz, start, end, _ in json.load(sys.stdin):
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    cron = Cron(expression, tz)
    fires = [f"{fire:%m-%dT%H:%M}" for fire in cron.between(first, last)]
    answers.append([fires, str(cron.latest_at(last)), str(cron.next_after(first))])
print(json.dumps(answers))
"""


@pytest.mark.parametrize("host", ["UTC", "Europe/London", "Asia/Kolkata", "America/New_York"])
def test_the_zone_of_the_host_changes_nothing(host: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(LISTS),
        env={**os.environ, "TZ": host, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    expected = []
    for expression, tz, start, end, fire_times in LISTS:
        first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
        cron = Cron(expression, tz)
        expected.append([fire_times, str(cron.latest_at(last)), str(cron.next_after(first))])
    assert json.loads(done.stdout) == expected


def test_a_gap_that_ends_off_the_minute_still_fires_when_asked_from_within_that_minute() -> None:
    monrovia = Cron("0 0,* * * *", tz="Africa/Monrovia")
    fire = datetime(1972, 1, 7, 0, 45, tzinfo=UTC)
    assert monrovia.next_after(fire - timedelta(seconds=15)) == fire
    assert next(iter(monrovia.between(fire, fire + timedelta(seconds=1)))) == fire
    assert monrovia.next_after(fire) == datetime(1972, 1, 7, 1, tzinfo=UTC)
