"""The processes of a soak: replicas and workers that are started again when they end, as an orchestrator would."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic

from tests.soak.orders import Orders

_ROOT = Path(__file__).parents[2]
_PAUSE_S = 0.3
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
"""What sets a process's wall clock; None where Debian's package libfaketime, or its like, is not there."""


class Unit:
    """One place in the crew, and the process that fills it at the moment.

    Args:
        orders: of its processes.
        role: "replica" or "worker".
        folder: for its log, and the file that its clock is set by.
    """

    def __init__(self, orders: Orders, role: str, folder: Path) -> None:
        self.orders = orders
        self.role = role
        self.starts = 0
        self._log = folder / f"{orders.name}.log"
        self._clock = folder / f"{orders.name}.clock"
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_at = 0.0
        self._is_wanted = False
        self._clock_rate = self._clock_offset = 0.0
        self._clock_set_at = monotonic()
        self.set_clock(0)

    @property
    def name(self) -> str:
        """Of the process, in records and in the ledger."""
        return self.orders.name

    @property
    def is_alive(self) -> bool:
        """Whether a process is there, stopped or not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Have a process from now on."""
        self._is_wanted = True
        self.tend()

    def tend(self) -> None:
        """Start a process where one is wanted, none is there, and the last one has been gone for a moment."""
        if self._clock_rate:
            self._turn_clock()
        if self.is_alive or not self._is_wanted:
            return
        if self._process is not None and not self._ended_at:
            self._ended_at = monotonic()
        if self._process is not None and monotonic() < self._ended_at + _PAUSE_S:
            return
        self._ended_at = 0.0
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                cwd=_ROOT,
                env={**os.environ, **self.orders.environment(), **self._wrong_clock(), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def deploy(self, version: int) -> None:
        """Be of another version from the next start on."""
        self.orders = replace(self.orders, version=version)

    def set_clock(self, seconds: float) -> None:
        """Set its wall clock this far ahead of the machine's, at once and for later starts."""
        self._clock_offset, self._clock_set_at = seconds, monotonic()
        self._clock.write_text(f"{seconds:+.3f}\n")

    def skew_clock(self, rate: float) -> None:
        """Let its wall clock gain so many seconds each second from now on, from where it is; 0 for a right pace."""
        self._turn_clock()
        self._clock_rate = rate

    def _turn_clock(self) -> None:
        """By small steps: libfaketime's own rates would bend timeouts as well."""
        self.set_clock(self._clock_offset + self._clock_rate * (monotonic() - self._clock_set_at))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, if there is one."""
        if self.is_alive and self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def terminate(self) -> None:
        """Ask the process itself for an orderly end."""
        if self.is_alive and self._process is not None:
            self._process.terminate()

    def close(self) -> None:
        """End it for good."""
        self._is_wanted = False
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)

    def _command(self) -> list[str]:
        module = f"tests.soak.service_{self.orders.worker}"
        if self.role == "replica":
            return [sys.executable, "-m", module]
        if self.orders.worker == "arq":
            return [sys.executable, "-m", "arq", f"{module}.WorkerSettings"]
        options = ["--pool", "prefork", "--concurrency", "2", "--without-gossip", "--without-mingle"]
        options += ["--hostname", f"{self.name}@%h"]  # RabbitMQ lets no two workers of one name in
        return [sys.executable, "-m", "celery", "-A", module, "worker", "--loglevel", "INFO", *options]

    def _wrong_clock(self) -> dict[str, str]:
        """A wall clock that a file sets; the monotonic clock stays right. Replicas only."""
        if FAKETIME is None or self.role != "replica":
            return {}
        return {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
