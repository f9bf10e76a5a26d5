"""rq's cron: `rq cron benchmarks.peers.rq_app`, as https://python-rq.org/docs/cron/ says."""

import json
import os
from datetime import UTC, datetime

from rq import cron

LOAD = json.loads(os.environ["BENCH_LOAD"])


def work() -> None:
    """Nothing: the scheduler is measured, not the job."""


def expression(number: int) -> str:
    """Five fields, and a sixth for seconds behind them."""
    if LOAD["schedule"] == "second":
        return "* * * * * *"
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return f"{at.minute} {at.hour} * * * {at.second}"
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return f"{away.minute} {away.hour} * * *"


for each in range(LOAD["jobs"]):
    cron.register(work, queue_name="default", cron=expression(each), name=f"job-{each}")
