"""Ends code that runs in the main thread of a process from another thread of it.

A run that blocks in a `sleep` or on a socket sees nothing but a signal. The signal is SIGUSR1, by which Celery's
prefork pool ends a task at its soft time limit; a handler of ours stands before the one that was there, and passes on
every signal that is not ours.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any


class RunInterrupted(BaseException):
    """Raised in the middle of a run that has lost its slot; no `except Exception` of the job shall hold it up."""


class Interruption:
    """One piece of code in the main thread, from `open` to `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = self._is_wanted = False
        self._before: Any = None

    @staticmethod
    def here() -> Interruption | None:
        """An interruption for the code of this thread; None where there is no way to end it."""
        is_possible = hasattr(signal, "SIGUSR1") and hasattr(signal, "pthread_kill")
        return Interruption() if is_possible and threading.current_thread() is threading.main_thread() else None

    def open(self) -> None:
        """From now on, `interrupt` raises `RunInterrupted` in this thread, which is the main one."""
        self._before = signal.signal(signal.SIGUSR1, self._handle)
        self._is_open = True

    def close(self) -> None:
        """From now on, it does not; said twice, it stays so."""
        if not self._is_open:
            return
        self._is_open = False
        with self._lock:
            pass  # whoever was about to send the signal has sent it
        while self._is_wanted:  # the handler is about to run, and finds this closed
            time.sleep(0.001)
        signal.signal(signal.SIGUSR1, self._before)

    def interrupt(self) -> None:
        """End the code; from any other thread."""
        main = threading.main_thread().ident
        with self._lock:
            if self._is_open and main is not None:
                self._is_wanted = True
                signal.pthread_kill(main, signal.SIGUSR1)

    def _handle(self, number: int, frame: object) -> None:
        if self._is_wanted:
            self._is_wanted = False
            if self._is_open:
                raise RunInterrupted
        elif callable(self._before):
            self._before(number, frame)
