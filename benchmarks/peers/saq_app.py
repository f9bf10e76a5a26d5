"""SAQ's cron: `saq benchmarks.peers.saq_app.settings`, as its README says: `CronJob`s in the worker's settings."""

from collections.abc import Awaitable, Callable
from typing import Any

from saq import CronJob, Queue

from benchmarks.peers.schedule import LOAD, cron


def function(number: int) -> Callable[[Any], Awaitable[None]]:
    """A function of its own for each job: SAQ makes the id of a cron job from the function's name."""

    async def work(ctx: Any) -> None:  # noqa: ANN401 - SAQ's own context
        """Nothing: the scheduler is measured, not the job."""

    work.__qualname__ = f"job-{number}"
    return work


settings = {
    "queue": Queue.from_url(LOAD["url"]),
    "functions": [],
    "cron_jobs": [CronJob(function(number), cron=cron(number)) for number in range(LOAD["jobs"])],
}
