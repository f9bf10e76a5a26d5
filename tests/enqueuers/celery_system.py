"""Celery under the conformance suite: workers by `celery -A tests.enqueuers.celery_app worker`."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import celery

from slotqueue.enqueuers.celery import CeleryEnqueuer
from tests.enqueuers.systems import ROOT, WorkerProcess
from tests.forked import ForkedCelery
from tests.waiting import eventually


class CeleryWorker(WorkerProcess):
    """A worker with its pool processes: what befalls the machine befalls all of them."""

    def _start(self, command: Sequence[str], environment: dict[str, str]) -> ForkedCelery:
        return ForkedCelery(command, ROOT, environment, self.log)

    def kill(self) -> None:
        self._signal_all(signal.SIGKILL)
        self._process.wait(10)

    def freeze(self) -> None:
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def stop_cold(self) -> None:
        """Ask for an end without waiting for running tasks."""
        self._process.send_signal(signal.SIGQUIT)

    def close(self) -> None:
        self._signal_all(signal.SIGKILL)
        self._process.wait(10)

    def _signal_all(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class CelerySystem:
    """Implements `System` for Celery.

    Args:
        broker_url: Redis or RabbitMQ.
        effects_url: the Redis of the marks, and of the result backend.
        store_url: the coordinating Redis.
        folder: for the logs of the workers.
    """

    kind = "celery"
    stops_running = False

    def __init__(self, broker_url: str, effects_url: str, store_url: str, folder: Path) -> None:
        self.broker_url = broker_url
        self.effects_url = effects_url
        self.store_url = store_url
        self.queue = f"test-{secrets.token_hex(4)}"
        self.app = celery.Celery("tests", broker=broker_url, backend=effects_url, set_as_current=False)
        self.app.conf.task_default_queue = self.queue
        self._folder = folder
        self._workers: list[CeleryWorker] = []

    @property
    def is_redis(self) -> bool:
        return self.broker_url.startswith("redis")

    def enqueuer(self) -> CeleryEnqueuer:
        return CeleryEnqueuer(self.app)

    async def start(
        self,
        *,
        namespace: str = "ran",
        is_guarded: bool = True,
        tries: int | None = None,  # Celery has no such limit of its own
        replicas_to_ack: int = 0,
        pool: str = "prefork",
        concurrency: int = 1,
        module: str = "tests.enqueuers.celery_app",
        environment: dict[str, Any] | None = None,
        **conf: Any,
    ) -> CeleryWorker:
        """See `System.start`; `conf` is Celery's configuration."""
        app = {
            "broker_url": self.broker_url,
            "effects_url": self.effects_url,
            "store_url": self.store_url,
            "namespace": namespace,
            "is_guarded": is_guarded,
            "replicas_to_ack": replicas_to_ack,
            "conf": {"task_default_queue": self.queue, "worker_prefetch_multiplier": 1, **conf},
            **(environment or {}),
        }
        name = f"worker-{len(self._workers)}"
        command = [
            *("-A", module, "worker", "-n", f"{name}-{self.queue}@%h"),
            *("--pool", pool, "--concurrency", str(concurrency), "--loglevel", "INFO"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]
        worker = CeleryWorker(command, app, self._folder / f"{name}.log")
        self._workers.append(worker)
        expected = "enlisted" if is_guarded else " ready."
        try:
            await eventually(lambda: expected in worker.text() or not worker.is_alive, within=50)
        finally:
            assert worker.is_alive, worker.text()
        return worker

    async def send_plainly(self, task: str, message_id: str, **kwargs: Any) -> None:
        """See `System.send_plainly`."""
        await asyncio.to_thread(self.app.send_task, task, task_id=message_id, kwargs=kwargs)

    def result(self, key: str) -> dict[str, Any]:
        """What the result backend holds of a task id; PENDING where nothing."""
        found: dict[str, Any] = self.app.backend.get_task_meta(key, cache=False)
        return found

    def has_succeeded(self, key: str) -> bool:
        """Whether the result backend has a result."""
        return bool(self.result(key)["status"] == "SUCCESS")

    def restore_unacknowledged(self, visibility_timeout: float) -> None:
        """Do what each consumer of a Redis broker does now and then: give back what was not acknowledged in time."""
        options = {"visibility_timeout": visibility_timeout}
        with self.app.connection_for_read(transport_options=options) as connection:
            connection.default_channel.qos.restore_visible(num=10)

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self.app.close()

    def logs(self) -> str:
        return "\n".join(f"--- {worker.log.name}\n{worker.text()}" for worker in self._workers)
