"""The one thread in which a `SlotQueue` ticks in this process: started, stopped, and missing after a fork."""

from __future__ import annotations

import atexit
import os
import threading

from slotqueue.background import BackgroundTicker, Ticking
from slotqueue.events import ThreadDeferred
from slotqueue.preload import is_preloading, start_in_workers


class OwnThread:
    """At most one thread a process.

    Args:
        slots: what ticks there.
    """

    def __init__(self, slots: Ticking) -> None:
        self._slots = slots
        self._ticker: BackgroundTicker[Ticking] | None = None
        self._pid = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start it; said again in the same process, it changes nothing."""
        if is_preloading():
            start_in_workers(self.start)
            self._slots.events(ThreadDeferred(os.getpid()))
            return
        if self._pid != os.getpid():  # threads and locks do not survive a fork
            self._ticker, self._lock, self._pid = None, threading.Lock(), os.getpid()
            atexit.register(self.stop)
        with self._lock:
            if self._ticker is None:
                self._ticker = BackgroundTicker(self._slots)
                self._ticker.start()

    def stop(self) -> bool:
        """End it, within 5 s; whether it has ended."""
        if self._pid != os.getpid():
            return True
        with self._lock:
            ticker, self._ticker = self._ticker, None
        return ticker is None or ticker.stop()
