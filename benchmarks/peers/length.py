"""See a queue of Valkey grow, where MONITOR would be in the way: its length, asked every few milliseconds.

For bursts whose commands are few and long: MONITOR writes out each of them, and that would be a large part of what the
server has to do. The queue is read once it has stopped growing; nobody may take messages out of it meanwhile.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis

from benchmarks.peers.peer import Message, Observer, Observing, Place

Client = Any  # redis-py types its answers for async code as well
Read = Callable[[bytes], tuple[str, float]]
"""Of an entry of the queue: job and slot."""

_PAUSE_S = 0.003
_STILL_S = 0.3


class Growth:
    """What is known of a queue that grows: since when it has had which length."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, float]] = [(0, 0.0)]

    def saw(self, length: int, at: float) -> None:
        """Take in one look."""
        if length > self.steps[-1][0]:
            self.steps.append((length, at))

    def instants(self, count: int) -> list[float]:
        """When each of so many entries was seen first, in the order of the queue."""
        return [self.steps[bisect_left(self.steps, (place + 1, 0.0))][1] for place in range(count)]


class Lengths:
    """An observer of one queue."""

    def __init__(
        self, look: Callable[[], tuple[int, float]], entries: Callable[[], Sequence[tuple[str, float]]]
    ) -> None:
        self._look_once = look
        self._entries = entries
        self._growth = Growth()
        self._found: list[Message] = []
        self._now = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join(5)

    def messages(self) -> Sequence[Message]:
        """What was there when the queue last stood still."""
        length, since = self._growth.steps[-1]
        if length > len(self._found) and self._now - since > _STILL_S:
            entries = self._entries()[:length]
            instants = self._growth.instants(len(entries))
            self._found = [Message(at, *entry) for at, entry in zip(instants, entries, strict=True)]
        return self._found

    def sent(self) -> None:
        """Not seen."""

    def _look(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            length, self._now = self._look_once()
            self._growth.saw(length, self._now)


def growing_zset(key: str, read: Read) -> Observing:
    """How to observe a sorted set, whose entries are in the order of their coming."""
    return _growing(lambda client: client.zcard(key), lambda client: client.zrange(key, 0, -1), read)


def growing_list(key: str, read: Read) -> Observing:
    """How to observe a list that is filled from its left."""
    return _growing(lambda client: client.llen(key), lambda client: client.lrange(key, 0, -1)[::-1], read)


def _growing(length: Callable[[Client], int], entries: Callable[[Client], Sequence[bytes]], read: Read) -> Observing:
    @contextmanager
    def observe(place: Place) -> Iterator[Observer]:
        with redis.Redis.from_url(place.url) as looks, redis.Redis.from_url(place.url) as reads:

            def look() -> tuple[int, float]:
                count = length(looks)
                seconds, microseconds = looks.time()
                return count, seconds + microseconds / 1e6

            found = Lengths(look, lambda: [read(each) for each in entries(reads)])
            found.start()
            try:
                yield found
            finally:
                found.close()

    return observe
