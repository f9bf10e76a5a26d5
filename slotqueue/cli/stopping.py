"""SIGTERM, SIGINT and SIGHUP as an orderly stop: what is in hand is finished, and the process leaves within 5 s.

`signal.signal` alone, so that it is the same where event loops know no signal handlers. A stop that hangs all the
same (a name server that does not answer, a hook that blocks) is cut short: every step of the protocol bears a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_PATIENCE_SECONDS = 4.6
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
logger = logging.getLogger("slotqueue")


class Stopped(BaseException):
    """A signal came while the event loop did not run yet. No `except Exception` of an application stops it."""


class Stop:
    """Hears signals while it is entered. The first one stops in order, a second one ends the process at once."""

    def __init__(self) -> None:
        self.heard = ""
        """The name of the signal, "" before it came."""
        self.exit_code = 0
        """What a shell reports of a process that this signal ended, 143 for SIGTERM; 0 before it came."""
        self._before: dict[int, Any] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None

    def __enter__(self) -> Self:
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            is_ignored = name == "SIGHUP" and number is not None and signal.getsignal(number) is signal.SIG_IGN
            if number is not None and not is_ignored:  # `nohup` shall go on to work
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def event(self) -> asyncio.Event:
        """What is set by the first signal, in the running event loop."""
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        return self._event

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.heard:
            _leave(128 + number)
        self.heard, self.exit_code = signal.Signals(number).name, 128 + number
        if self._loop is None or self._event is None:
            raise Stopped
        watchdog = threading.Timer(_PATIENCE_SECONDS, self._cut_short)
        watchdog.daemon = True
        watchdog.start()
        with contextlib.suppress(RuntimeError):  # the loop is closed: it stops already
            self._loop.call_soon_threadsafe(self._event.set)

    def _cut_short(self) -> None:
        logger.warning("not everything could be closed within %s s of %s", _PATIENCE_SECONDS, self.heard)
        _leave(0)


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
