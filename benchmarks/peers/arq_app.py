"""arq's cron: `arq benchmarks.peers.arq_app.WorkerSettings`, as https://arq-docs.helpmanual.io/#cron-jobs says."""

from datetime import UTC
from typing import Any

from arq import cron
from arq.connections import RedisSettings
from arq.cron import CronJob

from benchmarks.peers.schedule import BURST, EACH_SECOND, LOAD, time_of_day


async def work(ctx: dict[str, Any]) -> None:
    """Nothing: the scheduler is measured, not the job."""


def cron_job(number: int) -> CronJob:
    name = f"job-{number}"
    if EACH_SECOND:
        return cron(work, name=name, second=None, microsecond=0)
    at = time_of_day(number)
    if BURST:
        return cron(work, name=name, hour=at.hour, minute=at.minute, second=at.second, microsecond=0)
    return cron(work, name=name, hour=at.hour, minute=at.minute)


class WorkerSettings:
    redis_settings = RedisSettings.from_dsn(LOAD["url"])
    timezone = UTC
    cron_jobs = [cron_job(number) for number in range(LOAD["jobs"])]  # noqa: RUF012 - arq's settings are plain
