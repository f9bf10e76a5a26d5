"""What the benchmarks share: the application under measure, and the server it runs against."""

from __future__ import annotations

import time
from collections.abc import Sequence

from slotqueue import Cron, Every, Policy, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.hooks import Hook
from slotqueue.protocols import Process

PERIOD = 10
"""Seconds between two bursts."""


def application(url: str, jobs: int, *, namespace: str = "ran", sweep_every: float = 60) -> SlotQueue:
    """A SlotQueue with so many jobs that fall due at one instant, every ten seconds."""
    slots = SlotQueue(
        url,
        enqueuer=ArqEnqueuer(),
        defaults=Policy(on_crash="complete"),
        namespace=namespace,
        sweep_every=sweep_every,
    )
    for i in range(jobs):
        slots.add(f"job-{i}", Every(seconds=PERIOD), task="work", args=(i,))
    return slots


def idle_application(url: str, jobs: int, *, on_event: Hook | Sequence[Hook] = ()) -> SlotQueue:
    """A SlotQueue with so many daily jobs, spread over the day but for the next hour, each at its own minute."""
    slots = SlotQueue(url, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"), on_event=on_event)
    hour = time.gmtime().tm_hour
    for i in range(jobs):
        slots.add(f"job-{i}", Cron(f"{i % 60} {(hour + 2 + i // 60 % 20) % 24} * * *"), task="work", args=(i,))
    return slots


async def enlist_worker(slots: SlotQueue, task: str = "work") -> None:
    """Register a guarded worker for the task, so that its slots are followed; there need be none."""
    await slots.store.run(slots.store.verbs.enlist(Process("worker-1-4711-5f3a9c", tasks=(f"arq:{task}",))))


def seconds_to_next_burst() -> float:
    """How long until the jobs of `application` are due; at least half a second ahead."""
    ahead = PERIOD - time.time() % PERIOD
    return ahead if ahead > 0.5 else ahead + PERIOD
