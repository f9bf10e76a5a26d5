"""What a worker's parent process tells the store: off the loop that talks to the broker, and repeated for a while."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

from slotqueue.errors import SlotQueueError

_LAST_SECONDS = 3.0


class Reports:
    """Says reports one after the other, in a thread of its own: the first that is said of a run counts."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def say(self, report: Callable[[], None]) -> None:
        """Say it now or soon. What cannot be said in time the sweep will find."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="slotqueue reports", daemon=True)
            self._thread.start()
        self._queue.put(report)

    def finish(self) -> None:
        """Wait until all is said, a few seconds at most."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(_LAST_SECONDS)
            self._thread = None

    def _live(self) -> None:
        while (report := self._queue.get()) is not None:
            with contextlib.suppress(SlotQueueError):
                report()
