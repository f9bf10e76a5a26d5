"""APScheduler within a replica of a service: each job puts a message into a list of Redis."""

import json
import os
import signal
from datetime import UTC, datetime

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from redis import Redis

LOAD = json.loads(os.environ["BENCH_LOAD"])
client = Redis.from_url(LOAD["url"])


def put(job: str) -> None:
    client.rpush("queue", job)


def trigger(number: int) -> CronTrigger:
    if LOAD["schedule"] == "second":
        return CronTrigger(second="*")
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return CronTrigger(hour=at.hour, minute=at.minute, second=at.second, timezone=UTC)
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return CronTrigger(hour=away.hour, minute=away.minute, timezone=UTC)


if __name__ == "__main__":
    scheduler = BackgroundScheduler()
    for each in range(LOAD["jobs"]):
        scheduler.add_job(put, trigger(each), args=(f"job-{each}",), id=f"job-{each}")
    scheduler.start()
    signal.pause()
