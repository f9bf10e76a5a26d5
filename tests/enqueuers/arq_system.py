"""arq under the conformance suite: workers by `arq tests.enqueuers.arq_app.WorkerSettings`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from arq.connections import RedisSettings, create_pool

from slotqueue.enqueuers.arq import ArqEnqueuer
from tests.enqueuers.systems import WorkerProcess
from tests.waiting import eventually


class ArqSystem:
    """Implements `System` for arq.

    Args:
        broker_url: arq's Redis.
        store_url: the coordinating Redis.
        folder: for the logs of the workers.
    """

    kind = "arq"
    stops_running = True

    def __init__(self, broker_url: str, store_url: str, folder: Path) -> None:
        self.broker_url = self.effects_url = broker_url
        self.store_url = store_url
        self._folder = folder
        self._workers: list[WorkerProcess] = []

    def enqueuer(self) -> ArqEnqueuer:
        return ArqEnqueuer(RedisSettings.from_dsn(self.broker_url))

    async def start(
        self,
        *,
        namespace: str = "ran",
        is_guarded: bool = True,
        tries: int | None = None,
        replicas_to_ack: int = 0,
        **settings: Any,
    ) -> WorkerProcess:
        """See `System.start`; `settings` go into the worker's settings class, `functions` to `arq.func` by name."""
        if tries is not None:
            settings["max_tries"] = tries
        app = {
            "broker_url": self.broker_url,
            "store_url": self.store_url,
            "namespace": namespace,
            "is_guarded": is_guarded,
            "replicas_to_ack": replicas_to_ack,
            "functions": settings.pop("functions", {}),
            "settings": {"poll_delay": 0.05, "job_timeout": 120, **settings},
        }
        command = [sys.executable, "-m", "arq", "tests.enqueuers.arq_app.WorkerSettings"]
        worker = WorkerProcess(command, app, self._folder / f"worker-{len(self._workers)}.log")
        self._workers.append(worker)
        expected = "enlisted" if is_guarded else "redis_version"
        try:
            await eventually(lambda: expected in worker.text() or not worker.is_alive, within=40)
        finally:
            assert worker.is_alive, worker.text()
        return worker

    async def send_plainly(self, task: str, message_id: str, **kwargs: Any) -> None:
        """See `System.send_plainly`."""
        pool = await create_pool(RedisSettings.from_dsn(self.broker_url))
        try:
            assert await pool.enqueue_job(task, _job_id=message_id, **kwargs)
        finally:
            await pool.aclose(close_connection_pool=True)

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def logs(self) -> str:
        return "\n".join(f"--- {worker.log.name}\n{worker.text()}" for worker in self._workers)
