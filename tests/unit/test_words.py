"""How instants, durations and names are said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from slotqueue.words import count, did_you_mean, duration, instant, within


@pytest.mark.parametrize(
    "ms, said",
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (3240, "3.2 s"),
        (59_999, "60 s"),
        (60_000, "1 min"),
        (250_000, "4 min 10 s"),
        (3_600_000, "1 h"),
        (3_605_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (86_400_000 * 3 + 3_600_000 * 4, "3 d 4 h"),
        (-1500, "1.5 s"),
    ],
)
def test_durations_have_two_units_at_most(ms: int, said: str) -> None:
    assert duration(ms) == said


def test_instants_are_said_in_utc_with_ms_where_there_are_any() -> None:
    berlin = timezone(timedelta(hours=2))
    assert instant(datetime(2026, 10, 2, 5, 0, tzinfo=berlin)) == "2026-10-02T03:00:00Z"
    assert instant(datetime(2026, 10, 2, 3, 0, 0, 123_456, tzinfo=UTC)) == "2026-10-02T03:00:00.123Z"
    assert instant(0) == "1970-01-01T00:00:00Z"


def test_the_way_from_now_has_a_direction() -> None:
    assert within(5000, 2000) == "in 3 s"
    assert within(2000, 5000) == "3 s ago"


def test_one_is_no_plural() -> None:
    assert [count(number, "slot") for number in (0, 1, 2)] == ["0 slots", "1 slot", "2 slots"]


def test_near_names_are_offered_and_far_ones_listed() -> None:
    assert did_you_mean("rolup", ["rollup", "digest"]) == "did you mean 'rollup'?"
    assert did_you_mean("zzz", ["rollup", "digest"]) == "known are 'digest', 'rollup'"
    assert did_you_mean("zzz", [f"job-{number:02}" for number in range(12)]).endswith("'job-09' and 2 more")
    assert did_you_mean("zzz", []) == ""
