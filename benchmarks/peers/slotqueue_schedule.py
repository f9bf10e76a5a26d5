"""When slotqueue's jobs of a benchmark are due, whichever worker system is behind it."""

import json
import os
from datetime import UTC, datetime

from slotqueue import Cron, Every

LOAD = json.loads(os.environ["BENCH_LOAD"])


def schedule(number: int) -> Cron | Every:
    if LOAD["schedule"] == "second":
        return Every(seconds=1)
    if LOAD["schedule"] == "burst":
        at = datetime.fromtimestamp(LOAD["at"], UTC)
        return Cron(f"{at.second} {at.minute} {at.hour} * * *", seconds=True)
    away = datetime.fromtimestamp(LOAD["at"] + 3600 + number % 1200 * 60, UTC)
    return Cron(f"{away.minute} {away.hour} * * *")
