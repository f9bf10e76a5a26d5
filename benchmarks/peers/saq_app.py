"""SAQ's cron: `saq benchmarks.peers.saq_app.settings`, as its README says: `CronJob`s in the worker's settings."""

import json
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from saq import CronJob, Queue

LOAD = json.loads(os.environ["BENCH_LOAD"])


def function(number: int) -> Callable[[Any], Awaitable[None]]:
    """A function of its own for each job: SAQ makes the id of a cron job from the function's name."""

    async def work(ctx: Any) -> None:  # noqa: ANN401 - SAQ's own context
        """Nothing: the scheduler is measured, not the job."""

    work.__qualname__ = f"job-{number}"
    return work


def expression(number: int) -> str:
    if LOAD["schedule"] == "second":
        return "* * * * * *"  # croniter's sixth field is of seconds
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return f"{at.minute} {at.hour} * * * {at.second}"
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return f"{away.minute} {away.hour} * * *"


settings = {
    "queue": Queue.from_url(LOAD["url"]),
    "functions": [],
    "cron_jobs": [CronJob(function(number), cron=expression(number)) for number in range(LOAD["jobs"])],
}
