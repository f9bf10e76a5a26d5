from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slotqueue import Cron, Policy, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.errors import ConfigurationError
from slotqueue.testing import fires


@pytest.fixture
def slots() -> SlotQueue:
    slots = SlotQueue("redis://nowhere:1/0", enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="skip"))
    slots.add("nightly", Cron("30 2 * * *", tz="Europe/Berlin"))
    return slots


def test_the_fire_times_of_a_job_are_listed_without_any_redis(slots: SlotQueue) -> None:
    start, end = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    assert fires(slots, "nightly", start, end) == [
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    ]


def test_wrong_questions_are_answered_with_what_would_be_right(slots: SlotQueue) -> None:
    start, end = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    with pytest.raises(ConfigurationError, match="job 'nigthly': there is no such job; did you mean 'nightly'"):
        fires(slots, "nigthly", start, end)
    with pytest.raises(ConfigurationError, match="end: 2026-03-30T00:00:00 has no time zone"):
        fires(slots, "nightly", start, end.replace(tzinfo=None))
