"""A day of 10,000 jobs by a clock that the test sets: what a pass looks at, how long it takes, what is left behind."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from slotqueue.jobs import Job
from slotqueue.planner import Planner
from slotqueue.policy import Policy
from slotqueue.schedules import Cron, Every
from slotqueue.slots import to_ms

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TICK_MS = 10_000
JOBS = 10_000
POLICY = Policy(on_crash="complete")


def schedule(number: int) -> Cron | Every:
    """One of a hundred jobs fires each hour; the others once a day, by cron in two zones or by a period."""
    minute, hour = number % 60, number // 60 % 24
    match number % 100:
        case 0:
            return Cron(f"{minute} * * * *")
        case few if few < 50:
            return Cron(f"{minute} {hour} * * *", tz="Europe/Berlin" if few < 10 else "UTC")
        case _:
            return Every(days=1, offset=timedelta(seconds=number))


def memory_kb() -> int:
    return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmRSS:")[1].split()[0])


@pytest.mark.slow
def test_ten_thousand_jobs_cost_a_pass_what_is_due_and_nothing_grows_over_a_day() -> None:
    """Case 63, celery/django-celery-beat#445, #454; celery/celery#4175, #4996: stuck for hours, CPU, memory."""
    began = time.process_time()
    planner = Planner("ran")
    for number in range(JOBS):
        job = Job(
            name=f"job-{number}", schedule=schedule(number), task="work", enqueuer="arq", policy=POLICY, period=HOUR
        )
        planner.add(job, since=to_ms(MIDNIGHT), decided=0)
    assert time.process_time() - began < 10

    offered, late, idle, memory = 0, 0, list[float](), 0
    for now in range(to_ms(MIDNIGHT), to_ms(MIDNIGHT + DAY) + 1, TICK_MS):
        started = time.process_time()
        dues = planner.due(now).dues
        if not dues:
            idle.append(time.process_time() - started)
        for due in dues:
            assert due.gap is None
            for offer in due.offers:
                offered += 1
                late += now - to_ms(offer.slot.fire_time) >= TICK_MS
            planner.settle(due)
        if now == to_ms(MIDNIGHT + HOUR):
            memory = memory_kb()
    assert (offered, late) == (99 * JOBS // 100 + 24 * JOBS // 100, 0)
    assert len(idle) > 1000
    assert median(idle) < 0.001, "it looks at the next instant, not at every job"
    assert max(idle) < 0.1
    assert len(planner) == JOBS
    assert len(planner._turns) == len(planner._due_at) <= JOBS
    assert sum(map(len, planner._due_at.values())) == JOBS
    assert memory_kb() - memory < 4096
