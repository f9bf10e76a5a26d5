"""taskiq's scheduler: `taskiq scheduler benchmarks.peers.taskiq_app:scheduler`, as its guide says: labels of a task."""

from typing import Any

from taskiq import TaskiqScheduler
from taskiq.schedule_sources import LabelScheduleSource
from taskiq_redis import RedisStreamBroker

from benchmarks.peers.schedule import BURST, EACH_SECOND, LOAD, time_of_day


def due(number: int) -> dict[str, Any]:
    if EACH_SECOND:
        return {"interval": 1}
    at = time_of_day(number)
    if BURST:
        return {"time": at}
    return {"cron": f"{at.minute} {at.hour} * * *"}


broker = RedisStreamBroker(url=LOAD["url"])
scheduler = TaskiqScheduler(broker=broker, sources=[LabelScheduleSource(broker)])


@broker.task(schedule=[{**due(number), "args": [f"job-{number}"]} for number in range(LOAD["jobs"])])
async def work(name: str) -> None:
    """Nothing: the scheduler is measured, not the job."""
