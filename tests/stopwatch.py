"""Limits on time that hold on any machine: they count the time that the machine was there for."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

_TICK_SECONDS = 0.01


class Stopwatch:
    """How long something takes, less the time for which the machine stood still or served others.

    A thread sleeps hundredths of a second and counts them. Whoever else waits or works in this process meanwhile does
    not hold it up; what holds up all of the process holds it up as well. A context manager.

    Args:
        pid: of another process that is waited for: for how long it was ready to run and did not (Linux tells), is no
            time of its own.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid
        self._ticks = 0
        self._withheld = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """So far, or in all once it is over; a little less than any other clock would say."""
        return max(0.0, self._ticks * _TICK_SECONDS - self._withheld)

    def _count(self) -> None:
        before = self._delays()
        while not self._is_over.is_set():
            time.sleep(_TICK_SECONDS)
            self._ticks += 1
            self._withheld = max(self._withheld, self._delays() - before)

    def _delays(self) -> float:
        """For how many seconds the other process has waited for a core, ever; 0 where nobody can tell any more."""
        try:
            return int(Path(f"/proc/{self._pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0
