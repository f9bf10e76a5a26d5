"""A schedule cut to a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slotqueue import Every
from slotqueue.window import Window

START = datetime(2026, 10, 2, 3, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WINDOW = Window(Every(seconds=1), START, START + 3 * SECOND)
FIRES = [START, START + SECOND, START + 2 * SECOND]


def test_its_fire_times_are_those_in_the_window() -> None:
    assert list(WINDOW.between(START - 10 * SECOND, START + 10 * SECOND)) == FIRES
    assert list(WINDOW.between(START + SECOND, START + 2 * SECOND)) == FIRES[1:2]
    assert list(WINDOW.between(START + 5 * SECOND, START + 9 * SECOND)) == []


def test_the_first_follows_any_earlier_instant_and_none_follows_the_last() -> None:
    assert WINDOW.next_after(START - timedelta(days=1)) == FIRES[0]
    assert WINDOW.next_after(FIRES[0]) == FIRES[1]
    assert WINDOW.next_after(FIRES[2]) is None


def test_the_last_stays_the_latest_and_none_is_before_the_first() -> None:
    assert WINDOW.latest_at(START + timedelta(days=1)) == FIRES[2]
    assert WINDOW.latest_at(FIRES[1]) == FIRES[1]
    assert WINDOW.latest_at(START) == FIRES[0]
    assert WINDOW.latest_at(START - SECOND) is None
