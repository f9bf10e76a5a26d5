"""streaQ's cron: `streaq run benchmarks.peers.streaq_app:worker`, as its documentation says: `@worker.cron`."""

from datetime import UTC

from streaq import Worker

from benchmarks.peers.schedule import BURST, EACH_SECOND, LOAD, time_of_day


def expression(number: int) -> str:
    if EACH_SECOND:
        return "* * * * * * *"  # seven fields, the first of seconds
    at = time_of_day(number)
    if BURST:
        return f"{at.second} {at.minute} {at.hour} * * * *"
    return f"{at.minute} {at.hour} * * *"


async def work() -> None:
    """Nothing: the scheduler is measured, not the job."""


worker = Worker(redis_url=LOAD["url"], tz=UTC)
for number in range(LOAD["jobs"]):
    worker.cron(expression(number), name=f"job-{number}")(work)
