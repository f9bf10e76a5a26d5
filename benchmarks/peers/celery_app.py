"""Celery's beat: `celery -A benchmarks.peers.celery_app beat`; redbeat: the same with `-S redbeat.RedBeatScheduler`."""

from datetime import timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab

from benchmarks.peers.schedule import EACH_SECOND, LOAD, time_of_day


def when(number: int) -> dict[str, Any]:
    if EACH_SECOND:
        return {"schedule": timedelta(seconds=1), "relative": True}  # "relative" is Celery's word for by the clock
    at = time_of_day(number)
    return {"schedule": crontab(at.minute, at.hour)}


app = Celery("peers", broker=LOAD["url"])
app.conf.redbeat_redis_url = LOAD["url"]
app.conf.beat_schedule = {
    f"job-{number}": {"task": "work", "args": (f"job-{number}",), **when(number)} for number in range(LOAD["jobs"])
}
