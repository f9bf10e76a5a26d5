"""When slotqueue's jobs of a benchmark are due, whichever worker system is behind it."""

from benchmarks.peers.schedule import BURST, EACH_SECOND, time_of_day
from slotqueue import Cron, Every


def schedule(number: int) -> Cron | Every:
    if EACH_SECOND:
        return Every(seconds=1)
    at = time_of_day(number)
    if BURST:
        return Cron(f"{at.second} {at.minute} {at.hour} * * *", seconds=True)
    return Cron(f"{at.minute} {at.hour} * * *")
