"""The real command as a process, and what it prints."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.stopwatch import Stopwatch


def _is_pending(number: int, status: str) -> bool:
    masks = [line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


class Started:
    """`slotqueue ARGS` as a process of its own, its output in files."""

    def __init__(self, args: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._out, self._err = folder / "stdout.txt", folder / "stderr.txt"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "slotqueue", *args],
                cwd=folder,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def wait_for(self, text: str, seconds: float = 40.0) -> None:
        """Wait until the output, either one, holds a text."""
        until = time.monotonic() + seconds
        while text not in self.out + self.err:
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.out}{self.err}"
            assert time.monotonic() < until, f"no {text!r} within {seconds} s: {self.out}{self.err}"
            time.sleep(0.01)

    def stop(self, number: int) -> tuple[int, float]:
        """Send a signal; return the exit code and how many seconds of a `Stopwatch` the process took to leave."""
        with Stopwatch(self.process.pid) as watch:
            self.process.send_signal(number)
            code = self.process.wait(30)
        return code, watch.seconds

    def hear(self, number: int) -> None:
        """Send a signal, and wait until the process has taken it: another one of its kind is lost before that."""
        self.process.send_signal(number)
        status = Path(f"/proc/{self.process.pid}/status")
        until = time.monotonic() + 15
        while time.monotonic() < until:
            time.sleep(0.3)
            if not status.exists() or not _is_pending(number, status.read_text()):
                return

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(15)
