"""What a worker's parent process tells the store: off the loop that talks to the broker, and repeated for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from time import monotonic

from slotqueue.errors import StoreUnavailable

_LAST_SECONDS = 3.0


class Reports:
    """Says each report in a thread of its own: they are rare, and the store may be away for as long as a lease."""

    def __init__(self) -> None:
        self._threads: set[threading.Thread] = set()

    def say(self, report: Callable[[], None]) -> None:
        """Say it now or soon. What cannot be said in time the sweep will find."""
        thread = threading.Thread(target=self._say, args=(report,), name="slotqueue report", daemon=True)
        self._threads.add(thread)
        thread.start()

    def finish(self) -> None:
        """Wait for what is being said, a few seconds at most."""
        until = monotonic() + _LAST_SECONDS
        for thread in list(self._threads):
            thread.join(max(0.0, until - monotonic()))

    def _say(self, report: Callable[[], None]) -> None:
        try:
            with contextlib.suppress(StoreUnavailable):
                report()
        finally:
            self._threads.discard(threading.current_thread())
