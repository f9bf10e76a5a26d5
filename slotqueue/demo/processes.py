"""The demo's child processes. Every one that was started is ended, by its id, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from slotqueue.demo.stage import VARIABLE, Stage
from slotqueue.errors import SlotQueueError


class ChildDied(SlotQueueError):
    """A process ended that nobody had killed; the message ends with its last lines."""


class Child:
    """One replica or worker.

    Args:
        command: what to run.
        stage: its part; the name in it is the child's.
    """

    def __init__(self, command: Sequence[str], stage: Stage) -> None:
        self.name = stage.name
        self.is_replica = stage.is_replica
        self.log = Path(stage.folder) / f"{self.name}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # a child whose input ends knows that the demo is gone
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, VARIABLE: json.dumps(asdict(stage))},
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its children in order
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def say(self, line: str) -> None:
        """Write a line to its input; one that has just died hears nothing."""
        if self._process.stdin is None:
            return
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def end(self, deadline: float) -> None:
        """Wait until it has ended; kill it at the deadline, an instant of `time.monotonic`."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                return

    def last_words(self) -> str:
        """What it wrote last, a dozen lines."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-12:])

    def unexpected(self) -> ChildDied:
        """Say that it ended on its own."""
        code = self._process.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ChildDied(f"{self.name} ended unexpectedly ({how}); its last lines:\n{self.last_words()}")
