"""rq's cron: `rq cron benchmarks.peers.rq_app`, as https://python-rq.org/docs/cron/ says."""

from rq import cron

from benchmarks.peers import schedule


def work() -> None:
    """Nothing: the scheduler is measured, not the job."""


for each in range(schedule.LOAD["jobs"]):
    cron.register(work, queue_name="default", cron=schedule.cron(each), name=f"job-{each}")
