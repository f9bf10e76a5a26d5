"""APScheduler within a replica of a service: each job puts a message into a list of Redis."""

import signal
from datetime import UTC

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from redis import Redis

from benchmarks.peers.schedule import EACH_SECOND, LOAD, time_of_day

client = Redis.from_url(LOAD["url"])


def put(job: str) -> None:
    client.rpush("queue", job)


def trigger(number: int) -> CronTrigger:
    if EACH_SECOND:
        return CronTrigger(second="*")
    at = time_of_day(number)
    return CronTrigger(hour=at.hour, minute=at.minute, second=at.second, timezone=UTC)


if __name__ == "__main__":
    scheduler = BackgroundScheduler()
    for each in range(LOAD["jobs"]):
        scheduler.add_job(put, trigger(each), args=(f"job-{each}",), id=f"job-{each}")
    scheduler.start()
    signal.pause()
