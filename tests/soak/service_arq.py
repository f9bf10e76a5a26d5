"""The arq service under soak.

A replica: `python -m tests.soak.service_arq`. A worker: `arq tests.soak.service_arq.WorkerSettings`.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Any, ClassVar

from arq.connections import RedisSettings
from arq.worker import func

from slotqueue.enqueuers.arq import ArqEnqueuer
from tests.soak import service
from tests.soak.orders import JOBS, SoakJob

_redis = RedisSettings.from_dsn(service.orders.broker_url)
slots = service.build(ArqEnqueuer(_redis))


def _task(job: SoakJob) -> Any:
    async def run(_ctx: dict[str, Any]) -> None:
        began = service.began(job)
        await asyncio.sleep(job.seconds)
        service.ended(began)

    return run


@slots.worker
class WorkerSettings:
    functions: ClassVar[list[Any]] = [func(_task(job), name=f"soak.{job.name}") for job in JOBS]
    redis_settings = _redis
    poll_delay = 0.1
    job_timeout = 5
    max_tries = 1000


async def _replicate() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await slots.run(stopping)


if __name__ == "__main__":
    asyncio.run(_replicate())
