"""A schedule's text is enough to compute its fire times anywhere."""

from __future__ import annotations

import pytest

from slotqueue import Cron, Every
from slotqueue.ops.timetable import schedule_from


@pytest.mark.parametrize(
    "schedule, words",
    [
        (Cron("0 3 * * *", tz="Europe/Berlin"), "At 03:00 every day"),
        (Cron("@hourly"), "At the start of every hour"),
        (Cron("0 0 * * sat-sun"), "At 00:00 on Saturday and Sunday"),
        (Cron("5 0 3 * * *", seconds=True), "At 03:00:05 every day"),
        (Cron("0 9 1-7 * mon", both_days=True), "At 09:00 on every day of month from 1 through 7 and on Monday"),
        (Cron("0 9 1-7 * mon"), "At 09:00 on every day of month from 1 through 7 and on Monday"),
        (Every(minutes=5), None),
        (Every(days=7, offset=3600), None),
    ],
    ids=str,
)
def test_a_schedule_is_read_back_from_its_text(schedule: Cron | Every, words: str | None) -> None:
    assert schedule_from(str(schedule)) == schedule
    assert str(schedule_from(str(schedule))) == str(schedule)
    assert getattr(schedule, "words", None) == words


@pytest.mark.parametrize(
    "text", ["", "sunset Berlin", "every 0s", "every s", "cron 61 * * * * UTC", "cron 0 3 * * * Nowhere/City", "cron"]
)
def test_another_text_is_nothing_that_can_be_computed(text: str) -> None:
    assert schedule_from(text) is None
