"""Ctrl-C, SIGTERM and SIGHUP as one flag that is looked at between steps.

An exception out of a signal handler could strike between the birth of a child and the note of its id, and leave it
behind. So the handlers raise nothing, and a second Ctrl-C does not break the tidying up after the first.
"""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
_STEP_SECONDS = 0.05


class Interrupted(Exception):
    """The demo was asked to stop; `signal` is the number."""

    def __init__(self, number: int) -> None:
        self.signal = number
        super().__init__(signal.Signals(number).name)


class Interrupts:
    """Catches the signals while its block runs."""

    def __init__(self) -> None:
        self._caught = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in _NAMES:
            number = getattr(signal, name, None)
            # One that is ignored on purpose stays so: `nohup slotqueue demo` outlives its terminal.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._catch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Look at the flag.

        Raises:
            Interrupted: a signal has come; tidy up.
        """
        if self._caught:
            raise Interrupted(self._caught)

    def sleep(self, seconds: float) -> None:
        """Sleep, and look.

        Raises:
            Interrupted: as `check`.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _STEP_SECONDS))
        self.check()

    def _catch(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._caught = self._caught or number
