"""When a job of an application under measure is due. That runs in its peer's environment: only Python is there."""

import json
import os
from datetime import UTC, datetime

LOAD = json.loads(os.environ["BENCH_LOAD"])
EACH_SECOND, BURST = LOAD["schedule"] == "second", LOAD["schedule"] == "burst"


def time_of_day(number: int) -> datetime:
    """Of a job that is not due each second: the burst's instant, else a whole minute that is an hour away or more."""
    if BURST:
        return datetime.fromtimestamp(LOAD["at"], UTC)
    return datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC).replace(second=0)


def cron(number: int) -> str:
    """Five fields, and a sixth for seconds behind them where they count."""
    if EACH_SECOND:
        return "* * * * * *"
    at = time_of_day(number)
    return f"{at.minute} {at.hour} * * *{f' {at.second}' if BURST else ''}"
