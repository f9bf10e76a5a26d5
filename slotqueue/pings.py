"""Outbound heartbeats for dead-man's switches: a URL that is asked for when all is well, so that silence is noticed.

A thread of its own does the asking, with httpx: no tick and no run ever waits for it. What cannot be reached is tried
three times, reported, and given up; where pings pile up, the newest are dropped.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from types import ModuleType
from urllib.parse import urlsplit

from slotqueue.errors import ConfigurationError, MissingExtra
from slotqueue.events import Events, PingFailed
from slotqueue.guard_events import RunDone

PING_SECONDS = 60.0
"""How often a replica says that it ticks."""
_TIMEOUT_SECONDS = 5.0
_PAUSES = (1.0, 3.0)
_MOST_PENDING = 1000
_THREAD_NAME = "slotqueue-pings"


class Pings:
    """Asks for URLs from a thread of its own, which it starts at the first of them.

    Args:
        events: takes events, and tells of runs that are done.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._by_job: dict[str, str] = {}
        self._is_hearing = False
        self._thread: threading.Thread | None = None
        self._reset()

    def add(self, job: str, url: str) -> None:
        """Ask for a URL whenever a slot of a job is done in this process.

        Raises:
            MissingExtra: httpx is not installed.
            ConfigurationError: no URL of http or https.
        """
        check_url(url, job)
        self._by_job[job] = url
        if not self._is_hearing:
            self._is_hearing = True
            self._events.hooks.add(self.hear)

    def remove(self, job: str) -> None:
        """Ask no more for the URL of a job."""
        self._by_job.pop(job, None)

    def hear(self, event: object) -> None:
        """Take an event: a run that is done may have a URL to be asked for."""
        if isinstance(event, RunDone) and (url := self._by_job.get(event.job)):
            self.send(url)

    def send(self, url: str) -> None:
        """Ask for a URL soon; returns at once."""
        if self._pid != os.getpid():  # threads do not survive a fork
            self._reset()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name=_THREAD_NAME, daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(url)
        except queue.Full:
            self._events(PingFailed(_place(url), "too many pings wait; this one is dropped"))

    def close(self) -> None:
        """End the thread once it has asked for what waits, within a second."""
        thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid():
            self._waiting.put(None)
            thread.join(1)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: queue.Queue[str | None] = queue.Queue(_MOST_PENDING)
        self._thread = None

    def _live(self) -> None:
        httpx = _httpx()
        logging.getLogger("httpx").addFilter(_is_not_ours)  # again is harmless
        with httpx.Client(timeout=_TIMEOUT_SECONDS, follow_redirects=True) as client:
            while (url := self._waiting.get()) is not None:
                problem = ""
                for pause in (*_PAUSES, 0.0):
                    try:
                        client.get(url).raise_for_status()
                    except (httpx.HTTPError, httpx.InvalidURL) as error:
                        problem = type(error).__name__
                        time.sleep(pause)
                    else:
                        problem = ""
                        break
                if problem:
                    self._events(PingFailed(_place(url), problem))


def check_url(url: str, job: str | None = None) -> None:
    """Refuse what cannot be asked for.

    Raises:
        MissingExtra: httpx is not installed.
        ConfigurationError: no URL of http or https.
    """
    _httpx()
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except (ValueError, AttributeError, TypeError):
        is_url = False
    if not is_url:
        raise ConfigurationError(
            "no URL that could be asked for; one looks like https://hc-ping.com/your-uuid",
            job=job,
            argument="heartbeat_url",
        )


def _is_not_ours(record: logging.LogRecord) -> bool:
    """Keep what httpx logs of every request, its whole URL, to the requests of others: ours may hold a secret."""
    return record.threadName != _THREAD_NAME


def _httpx() -> ModuleType:
    try:
        import httpx  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("httpx is not installed; install it with: pip install 'slotqueue[heartbeat]'") from error
    return httpx


def _place(url: str) -> str:
    """Where a URL leads, without what may be a secret."""
    return urlsplit(url).hostname or "?"
