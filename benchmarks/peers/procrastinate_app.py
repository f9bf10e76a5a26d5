"""procrastinate: `procrastinate --app benchmarks.peers.procrastinate_app.app worker`, periodic as its guide says."""

from procrastinate import App, PsycopgConnector

from benchmarks.peers.schedule import LOAD, cron

app = App(connector=PsycopgConnector(conninfo=LOAD["url"]))


def work(timestamp: int, job: str) -> None:
    """Nothing: the scheduler is measured, not the job."""


task = app.task(name="work")(work)
for each in range(LOAD["jobs"]):
    app.periodic(cron=cron(each), periodic_id=f"job-{each}", task_kwargs={"job": f"job-{each}"})(task)
