"""What the conformance suite asks of a worker system; `arq_system` and `celery_system` answer.

A system starts real worker processes by the system's own command line. The workers' module has these tasks; each marks
what it does in the list `effects:<message id>` of the Redis at `effects_url`:

- `quick`: "ran".                            - `slow`, `seconds`: "began", waits until the key `go` is there, "ended".
- `tells`: the current slot, as its mark.    - `blocks`, `seconds`: "began", blocks the thread, "ended".
- `fails`: "failing", an error each time.    - `mends`: "failing" at the first attempt, "ran" later.
- `fails_long`: an error of 5 KB.            - `retries`, `times`, `delay`: "retrying" through the system, then "ran".

`slow` waits as the system's code does, for so many seconds at most: a test lets it go when it has seen what it wants.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from slotqueue.protocols import Enqueuer
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


class Process(Protocol):
    """What is asked of a started process."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def kill(self) -> None: ...


class WorkerProcess:
    """One process of a worker system, started by its command line."""

    def __init__(self, command: Sequence[str], app: dict[str, Any], log: Path) -> None:
        self.log = log
        environment = {**os.environ, "TEST_APP": json.dumps(app), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self._process = self._start(command, environment)

    def _start(self, command: Sequence[str], environment: dict[str, str]) -> Process:
        with self.log.open("wb") as output:
            return subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    async def says(self, what: str) -> None:
        """Wait until its log has this."""
        await eventually(lambda: what in self.text(), why=f"{self.log.name} says {what!r}")

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

    async def ended(self, within: float = 40.0) -> None:
        await eventually(lambda: not self.is_alive, within=within)

    def close(self) -> None:
        if self.is_alive:
            self.thaw()
            self.kill()


class System(Protocol):
    """A worker system under test."""

    kind: str
    store_url: str
    effects_url: str
    stops_running: bool
    """Whether an orderly stop cuts a running task short; else the worker lets it finish."""

    def enqueuer(self) -> Enqueuer:
        """Make the enqueuer under test."""
        ...

    async def start(
        self, *, namespace: str = "ran", is_guarded: bool = True, tries: int | None = None, replicas_to_ack: int = 0
    ) -> WorkerProcess:
        """Start a worker and wait until it takes messages, and, guarded, until it is enlisted.

        Args:
            namespace: which the worker knows.
            is_guarded: whether slotqueue is connected to it at all.
            tries: how often the system itself runs a message before it gives up, None for its default.
            replicas_to_ack: how many replicas of the store must acknowledge a begin.
        """
        ...

    async def send_plainly(self, task: str, message_id: str, **kwargs: Any) -> None:
        """Send a message that is no slot, as an application does."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...

    def logs(self) -> str:
        """What all workers have printed."""
        ...
