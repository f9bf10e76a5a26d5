"""Jobs with real schedules in the registry, as a replica puts them there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from slotqueue import Every
from slotqueue.answers import Known
from slotqueue.jobs import Job
from slotqueue.policy import Policy
from slotqueue.protocols import Process
from tests.store.stage import EPOCH_VALUE, Stage


def hourly_job(name: str = "rollup", schedule: object = None, **policy: Any) -> Job:
    """A job like those of `Stage`, with a schedule that can be computed."""
    return Job(
        name=name,
        schedule=schedule or Every(hours=1),
        task=f"do_{name}",
        enqueuer="arq",
        policy=Policy(**{"on_crash": "complete", **policy}),
        period=timedelta(hours=1),
    )


def register(stage: Stage, *jobs: Job, since: int = 0, decided: int = 0, replica: str = "r1") -> None:
    """Make jobs known, each since then (ms; 0: now), and decided up to then."""
    known = [Known.of(job, since, decided) for job in jobs]
    stage.run(stage.verbs.register(Process(replica), known, epoch=EPOCH_VALUE, is_last=True))
