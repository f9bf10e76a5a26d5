"""arq's cron: `arq benchmarks.peers.arq_app.WorkerSettings`, as https://arq-docs.helpmanual.io/#cron-jobs says."""

import json
import os
from datetime import UTC, datetime
from typing import Any

from arq import cron
from arq.connections import RedisSettings
from arq.cron import CronJob

LOAD = json.loads(os.environ["BENCH_LOAD"])


async def work(ctx: dict[str, Any]) -> None:
    """Nothing: the scheduler is measured, not the job."""


def cron_job(number: int) -> CronJob:
    name = f"job-{number}"
    if LOAD["schedule"] == "second":
        return cron(work, name=name, second=None, microsecond=0)
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return cron(work, name=name, hour=at.hour, minute=at.minute, second=at.second, microsecond=0)
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return cron(work, name=name, hour=away.hour, minute=away.minute)


class WorkerSettings:
    redis_settings = RedisSettings.from_dsn(LOAD["url"])
    timezone = UTC
    cron_jobs = [cron_job(number) for number in range(LOAD["jobs"])]  # noqa: RUF012 - arq's settings are plain
