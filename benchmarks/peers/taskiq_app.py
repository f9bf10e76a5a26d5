"""taskiq's scheduler: `taskiq scheduler benchmarks.peers.taskiq_app:scheduler`, as its guide says: labels of a task."""

import json
import os
from datetime import UTC, datetime
from typing import Any

from taskiq import TaskiqScheduler
from taskiq.schedule_sources import LabelScheduleSource
from taskiq_redis import RedisStreamBroker

LOAD = json.loads(os.environ["BENCH_LOAD"])


def due(number: int) -> dict[str, Any]:
    if LOAD["schedule"] == "second":
        return {"interval": 1}
    if LOAD["schedule"] == "burst":
        return {"time": datetime.fromtimestamp(LOAD["at"], UTC)}
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return {"cron": f"{away.minute} {away.hour} * * *"}


broker = RedisStreamBroker(url=LOAD["url"])
scheduler = TaskiqScheduler(broker=broker, sources=[LabelScheduleSource(broker)])


@broker.task(schedule=[{**due(number), "args": [f"job-{number}"]} for number in range(LOAD["jobs"])])
async def work(name: str) -> None:
    """Nothing: the scheduler is measured, not the job."""
