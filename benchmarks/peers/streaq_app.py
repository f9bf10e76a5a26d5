"""streaQ's cron: `streaq run benchmarks.peers.streaq_app:worker`, as its documentation says: `@worker.cron`."""

import json
import os
from datetime import UTC, datetime

from streaq import Worker

LOAD = json.loads(os.environ["BENCH_LOAD"])


def expression(number: int) -> str:
    if LOAD["schedule"] == "second":
        return "* * * * * * *"  # seven fields, the first of seconds
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return f"{at.second} {at.minute} {at.hour} * * * *"
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return f"{away.minute} {away.hour} * * *"


async def work() -> None:
    """Nothing: the scheduler is measured, not the job."""


worker = Worker(redis_url=LOAD["url"], tz=UTC)
for number in range(LOAD["jobs"]):
    worker.cron(expression(number), name=f"job-{number}")(work)
