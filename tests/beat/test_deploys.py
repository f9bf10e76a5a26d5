"""Case 40 with beat's crontabs: a deploy that changes or adds a schedule makes nothing fire at once."""

from __future__ import annotations

from datetime import UTC, datetime

import celery
import pytest
from celery.beat import ScheduleEntry
from celery.schedules import crontab

from slotqueue import Policy, SlotQueue
from slotqueue.beat.entries import entry_of
from slotqueue.planner import Planner
from slotqueue.slots import from_ms, to_ms


def planned(rule: crontab, *, since: str, decided: str | None = None) -> datetime:
    """The next fire time of an entry that is known since an instant, and decided up to one."""
    app = celery.Celery(set_as_current=False, broker="redis://localhost")
    said = ScheduleEntry(name="report", task="work", schedule=rule, app=app)
    entry = entry_of(said, app, Policy(on_crash="skip"))
    slots = SlotQueue("redis://localhost", enqueuer=_Anything(), defaults=entry.policy)  # type: ignore[arg-type]
    planner = Planner("ran")
    job = slots.add(entry.name, entry.schedule, task=entry.task)
    planner.add(job, since=_ms(since), decided=_ms(decided) if decided else 0)
    assert planner.due(_ms(since)).dues == []
    at = planner.next_at()
    assert at is not None
    return from_ms(at)


class _Anything:
    kind = "celery"

    def check(self, job: object) -> None: ...


def _ms(text: str) -> int:
    return to_ms(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    "rule, deployed, following",
    [
        (crontab(minute=0, hour=16), "2026-10-02T12:20Z", "2026-10-02T16:00Z"),
        (crontab(minute=0, hour=9), "2026-10-02T14:00Z", "2026-10-03T09:00Z"),
    ],
)
def test_a_changed_schedule_fires_at_its_own_next_time(rule: crontab, deployed: str, following: str) -> None:
    last = "2026-10-01T13:30Z"
    assert planned(crontab(minute=30, hour=13), since=last, decided=last) == datetime(2026, 10, 2, 13, 30, tzinfo=UTC)
    assert planned(rule, since=deployed, decided=last) == datetime.fromisoformat(following)


def test_a_new_entry_owes_nothing_from_before() -> None:
    new = planned(crontab(minute=0, hour=9), since="2026-10-02T14:00Z")
    assert new == datetime(2026, 10, 3, 9, tzinfo=UTC)
