"""The Celery service under soak.

A replica: `python -m tests.soak.service_celery`. A worker: `celery -A tests.soak.service_celery worker`.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable

import celery

from slotqueue.enqueuers.celery import CeleryEnqueuer
from tests.soak import service
from tests.soak.orders import JOBS, SoakJob

app = celery.Celery("soak", broker=service.orders.broker_url, set_as_current=False)
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 5},
)
slots = service.build(CeleryEnqueuer(app))


def _task(job: SoakJob) -> Callable[[], None]:
    def run() -> None:
        began = service.began(job)
        time.sleep(job.seconds)
        service.ended(began)

    return run


for _job in JOBS:
    app.task(_task(_job), name=f"soak.{_job.name}")


async def _replicate() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await slots.run(stopping)


if __name__ == "__main__":
    asyncio.run(_replicate())
