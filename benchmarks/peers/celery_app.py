"""Celery's beat: `celery -A benchmarks.peers.celery_app beat`; redbeat: the same with `-S redbeat.RedBeatScheduler`."""

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab

LOAD = json.loads(os.environ["BENCH_LOAD"])


def when(number: int) -> dict[str, Any]:
    if LOAD["schedule"] == "second":
        return {"schedule": timedelta(seconds=1), "relative": True}  # "relative" is Celery's word for by the clock
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return {"schedule": crontab(at.minute, at.hour)}
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return {"schedule": crontab(away.minute, away.hour)}


app = Celery("peers", broker=LOAD["url"])
app.conf.redbeat_redis_url = LOAD["url"]
app.conf.beat_schedule = {
    f"job-{number}": {"task": "work", "args": (f"job-{number}",), **when(number)} for number in range(LOAD["jobs"])
}
