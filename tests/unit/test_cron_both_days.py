"""`Cron(both_days=True)`: a date must match day-of-month and day-of-week, as Celery's `crontab` reads them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from slotqueue import Cron, InvalidSchedule

YEAR = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


def test_cron_is_content_with_either_day_and_both_days_asks_for_both() -> None:
    either, both = Cron("0 0 1-7 * 1"), Cron("0 0 1-7 * 1", both_days=True)
    first_mondays = [each for each in either.between(*YEAR) if each.day <= 7 and each.weekday() == 0]
    assert list(both.between(*YEAR)) == first_mondays
    assert len(first_mondays) == 12


def test_both_days_changes_nothing_where_one_day_is_a_star() -> None:
    assert list(Cron("0 0 * * 1", both_days=True).between(*YEAR)) == list(Cron("0 0 * * 1").between(*YEAR))


def test_two_readings_are_two_schedules() -> None:
    either, both = Cron("0 0 1-7 * 1"), Cron("0 0 1-7 * 1", both_days=True)
    assert either != both
    assert str(either) != str(both)
    assert pickle.loads(pickle.dumps(both)) == both
    assert repr(both) == "Cron('0 0 1-7 * 1', tz='UTC', both_days=True)"


def test_days_that_never_come_together_are_refused() -> None:
    Cron("0 0 31 2 1")
    with pytest.raises(InvalidSchedule, match="never fires: no date is day-of-month '31' of month '2'"):
        Cron("0 0 31 2 1", both_days=True)
    with pytest.raises(InvalidSchedule, match="both_days: 1 is no bool"):
        Cron("0 0 1 * 1", both_days=1)  # type: ignore[arg-type]
