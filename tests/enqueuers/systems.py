"""What the conformance suite asks of a worker system, and arq's answer to it.

A system starts real worker processes by the system's own command line. The workers' module has these tasks; each marks
what it does in the list `effects:<message id>` of the broker's Redis:

- `quick`: "ran".                            - `slow`, `seconds`: "began", waits as the system's code does, "ended".
- `tells`: the current slot, as its mark.    - `blocks`, `seconds`: "began", blocks the thread, "ended".
- `fails`: "failing", an error each time.    - `mends`: "failing" at the first attempt, "ran" later.
- `fails_long`: an error of 5 KB.            - `retries`, `times`, `delay`: "retrying" through the system, then "ran".
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from arq.connections import RedisSettings, create_pool

from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.protocols import Enqueuer
from tests.enqueuers.bench import eventually

_ROOT = Path(__file__).parents[2]


class WorkerProcess:
    """One process of a worker system, started by its command line."""

    def __init__(self, command: Sequence[str], app: dict[str, Any], log: Path) -> None:
        self.log = log
        environment = {**os.environ, "TEST_APP": json.dumps(app), "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=_ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def terminate(self) -> None:
        """Ask for an orderly end."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, with no chance to say a word."""
        self._process.kill()
        self._process.wait(10)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def ended(self, within: float = 15.0) -> None:
        await eventually(lambda: not self.is_alive, within=within)

    def close(self) -> None:
        if self.is_alive:
            self.thaw()
            self.kill()


class System(Protocol):
    """A worker system under test."""

    kind: str

    def enqueuer(self) -> Enqueuer:
        """Make the enqueuer under test."""
        ...

    async def start(
        self, *, namespace: str = "ran", is_guarded: bool = True, tries: int | None = None
    ) -> WorkerProcess:
        """Start a worker and wait until it takes messages, and, guarded, until it is enlisted.

        Args:
            namespace: which the worker knows.
            is_guarded: whether slotqueue is connected to it at all.
            tries: how often the system itself runs a message before it gives up, None for its default.
        """
        ...

    async def send_plainly(self, task: str, message_id: str, **kwargs: Any) -> None:
        """Send a message that is no slot, as an application does."""
        ...


class ArqSystem:
    """Implements `System` for arq.

    Args:
        broker_url: arq's Redis.
        store_url: the coordinating Redis.
        folder: for the logs of the workers.
    """

    kind = "arq"

    def __init__(self, broker_url: str, store_url: str, folder: Path) -> None:
        self.broker_url = broker_url
        self.store_url = store_url
        self._folder = folder
        self._workers: list[WorkerProcess] = []

    def enqueuer(self) -> ArqEnqueuer:
        return ArqEnqueuer(RedisSettings.from_dsn(self.broker_url))

    async def start(
        self, *, namespace: str = "ran", is_guarded: bool = True, tries: int | None = None, **settings: Any
    ) -> WorkerProcess:
        """See `System.start`; `settings` go into the worker's settings class, `functions` to `arq.func` by name."""
        if tries is not None:
            settings["max_tries"] = tries
        app = {
            "broker_url": self.broker_url,
            "store_url": self.store_url,
            "namespace": namespace,
            "is_guarded": is_guarded,
            "functions": settings.pop("functions", {}),
            "settings": {"poll_delay": 0.05, "job_timeout": 20, **settings},
        }
        command = [sys.executable, "-m", "arq", "tests.enqueuers.arq_app.WorkerSettings"]
        worker = WorkerProcess(command, app, self._folder / f"worker-{len(self._workers)}.log")
        self._workers.append(worker)
        expected = "enlisted" if is_guarded else "redis_version"
        try:
            await eventually(lambda: expected in worker.text() or not worker.is_alive)
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
