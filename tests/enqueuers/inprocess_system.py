"""Functions of a process under the conformance suite: the process is `tests.enqueuers.inprocess_app`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import redis.asyncio

from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Refused, Waiting
from tests.enqueuers.systems import WorkerProcess
from tests.waiting import eventually


class InProcessSystem:
    """Implements `System` for functions of a process.

    Args:
        effects_url: the Redis of the effects, which also carries messages into the processes.
        store_url: the coordinating Redis.
        folder: for the logs of the processes.
    """

    kind = "inprocess"
    stops_running = True

    def __init__(self, effects_url: str, store_url: str, folder: Path) -> None:
        self.effects_url = effects_url
        self.store_url = store_url
        self._folder = folder
        self.workers: list[WorkerProcess] = []

    def enqueuer(self) -> Forwarding:
        return Forwarding(self)

    async def start(
        self, *, namespace: str = "ran", is_guarded: bool = True, tries: int | None = None, replicas_to_ack: int = 0
    ) -> WorkerProcess:
        """See `System.start`; the process is always guarded, and nothing but the sweep tries again."""
        assert is_guarded
        app = {
            "effects_url": self.effects_url,
            "store_url": self.store_url,
            "namespace": namespace,
            "replicas_to_ack": replicas_to_ack,
        }
        command = [sys.executable, "-m", "tests.enqueuers.inprocess_app"]
        worker = WorkerProcess(command, app, self._folder / f"process-{len(self.workers)}.log")
        self.workers.append(worker)
        try:
            await eventually(lambda: "enlisted" in worker.text() or not worker.is_alive, within=40)
        finally:
            assert worker.is_alive, worker.text()
        return worker

    async def send_plainly(self, task: str, message_id: str, **kwargs: Any) -> None:
        """See `System.send_plainly`."""
        raise NotImplementedError("nobody but a replica sends messages into a process")

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    def logs(self) -> str:
        return "\n".join(f"--- {worker.log.name}\n{worker.text()}" for worker in self.workers)


class Forwarding:
    """Stands for the enqueuer of the newest process, in the test's own."""

    kind = InProcessSystem.kind

    def __init__(self, system: InProcessSystem) -> None:
        self._system = system
        self._redis: Any = redis.asyncio.Redis.from_url(system.effects_url)

    def check(self, job: Job) -> None: ...

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        alive = [worker for worker in self._system.workers if worker.is_alive]
        if not alive:
            return [Refused("no process is there")] * len(messages)
        inbox = f"inprocess:{alive[-1].pid}"
        await self._redis.rpush(inbox, pickle.dumps(list(messages)))
        answer = await self._redis.blpop([f"{inbox}:answers"], timeout=15)
        if answer is None:
            return [Refused("the process does not answer", is_sent_possible=True)] * len(messages)
        answers: list[Delivery] = pickle.loads(answer[1])
        return answers

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        await self._redis.aclose()
