"""procrastinate: `procrastinate --app benchmarks.peers.procrastinate_app.app worker`, periodic as its guide says."""

import json
import os
from datetime import UTC, datetime

from procrastinate import App, PsycopgConnector

LOAD = json.loads(os.environ["BENCH_LOAD"])
app = App(connector=PsycopgConnector(conninfo=LOAD["url"]))


def work(timestamp: int, job: str) -> None:
    """Nothing: the scheduler is measured, not the job."""


def cron(number: int) -> str:
    """Five fields, and a sixth for seconds behind them."""
    if LOAD["schedule"] == "second":
        return "* * * * * *"
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return f"{at.minute} {at.hour} * * * {at.second}"
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return f"{away.minute} {away.hour} * * *"


task = app.task(name="work")(work)
for each in range(LOAD["jobs"]):
    app.periodic(cron=cron(each), periodic_id=f"job-{each}", task_kwargs={"job": f"job-{each}"})(task)
