"""The outbox: what this replica has won waits here for its time, goes to the queue, and is confirmed.

A slot is claimed ahead of its time, so that at the instant nothing is left to do but to enqueue; an enqueuer that wants
messages ahead gets them earlier. Of a burst all that was ready goes out first, and is confirmed after that, within half
a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

from slotqueue.dispatch import ENQUEUE_SECONDS, Dispatcher
from slotqueue.errors import StoreUnavailable
from slotqueue.messages import Delivery, Message
from slotqueue.pace import Pace

_CONFIRMED_AT_ONCE = 1000
_TIMERS_LATE_SECONDS = 0.0025
_LONGEST_UNCONFIRMED_SECONDS = 0.5


class Outbox:
    """Sends messages when their time has come.

    Args:
        dispatcher: takes them to the queues, and tells the store.
        monotonic: seconds of a clock that never steps.
    """

    def __init__(self, dispatcher: Dispatcher, monotonic: Callable[[], float]) -> None:
        self.dispatcher = dispatcher
        self.monotonic = monotonic
        self.pace = Pace(dispatcher.enqueuers)
        self._numbers = count()
        self._parcels: list[_Parcel] = []
        """A heap by time."""
        self._keys: set[str] = set()
        """What was put in and is not confirmed."""
        self._size = 0
        self._unconfirmed: list[tuple[Message, Delivery]] = []
        self._work: asyncio.Task[None] | None = None
        self._confirms: set[asyncio.Task[None]] = set()
        self._counts: Counter[str] = Counter()
        self._failure: BaseException | None = None
        self._is_new, self._has_room = asyncio.Event(), asyncio.Event()

    def put(self, messages: Sequence[Message], at: float, *, claimed_at: float, doubt: str = "") -> None:
        """Take in messages of slots that were won. One that is here goes out once: a claim may be answered twice.

        Args:
            messages: one a slot.
            at: not before when their enqueuers are to get them, by the monotonic clock.
            claimed_at: when the claim was asked for, by the monotonic clock: 8 s later it is left to a sweep.
            doubt: why the claim may be lost yet; then nothing is enqueued, and the slots are released.
        """
        messages = [message for message in messages if message.slip.key not in self._keys]
        self._keys.update(message.slip.key for message in messages)
        is_ahead = at > self.monotonic()
        heapq.heappush(self._parcels, _Parcel(at, next(self._numbers), messages, claimed_at, doubt, is_ahead))
        self._size += len(messages)
        self._is_new.set()
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._send_all())
            self._work.add_done_callback(self._end)

    async def room(self) -> int:
        """Wait until the queue can take more within a few seconds, by its pace.

        Returns:
            How many slots may be claimed at once, one at least.
        """
        while self._size and not self.pace.is_room_behind(self._size):
            self._has_room.clear()
            await self._has_room.wait()
        return self.pace.batch

    async def drain(self) -> Counter[str]:
        """Wait until all has been sent and confirmed.

        Returns:
            How many messages were queued, sent, refused, stale or broken since this was asked last.

        Raises:
            StoreUnavailable: the store did not take a confirmation; the sweep will see to these slots.
        """
        while tasks := [task for task in (self._work, *self._confirms) if task is not None]:
            await asyncio.wait(tasks)
        self.check()
        counts, self._counts = self._counts, Counter()
        return counts

    def check(self) -> None:
        """Raise what went wrong since this was asked last.

        Raises:
            StoreUnavailable: see `drain`.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def cancel(self) -> None:
        """Give up at once: what was not sent is left to a sweep."""
        for task in (self._work, *self._confirms):
            if task is not None:
                task.cancel()
        self._parcels, self._unconfirmed, self._size = [], [], 0
        self._keys.clear()
        self._failure = None
        self._has_room.set()

    async def _send_all(self) -> None:
        unconfirmed_since = 0.0
        while self._parcels:
            if not await self._is_time(self._parcels[0]):
                continue
            parcel = self._next()
            answers = await self._enqueue(parcel)
            if not self._unconfirmed:
                unconfirmed_since = self.monotonic()
            self._unconfirmed += zip(parcel.messages, answers, strict=True)
            now = self.monotonic()
            is_more_ready = bool(self._parcels) and self._parcels[0].is_ahead and self._parcels[0].at <= now
            if not is_more_ready or now - unconfirmed_since > _LONGEST_UNCONFIRMED_SECONDS:
                self._confirm_all()

    async def _is_time(self, parcel: _Parcel) -> bool:
        """Wait until a parcel's time or until there may be an earlier one."""
        self._is_new.clear()
        left = parcel.at - self.monotonic()
        # The event loop's timers come up to some milliseconds late: the last stretch is yielded away instead.
        if left > _TIMERS_LATE_SECONDS:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_new.wait(), left - _TIMERS_LATE_SECONDS)
            return False
        while self.monotonic() < parcel.at:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0)
        return True

    def _next(self) -> _Parcel:
        """Take out what is to be sent next: as much as a batch may hold of what is due, under one claim's terms."""
        first = heapq.heappop(self._parcels)
        now, room = self.monotonic(), self.pace.batch
        messages = list(first.messages)
        while len(messages) < room and self._parcels and not first.doubt:
            other = self._parcels[0]
            if other.at > now or other.doubt or len(messages) + len(other.messages) > room:
                break
            messages += heapq.heappop(self._parcels).messages
            first = first._replace(claimed_at=min(first.claimed_at, other.claimed_at))
        if len(messages) > room:
            heapq.heappush(self._parcels, first._replace(messages=messages[room:]))
        return first._replace(messages=messages[:room])

    async def _enqueue(self, parcel: _Parcel) -> Sequence[Delivery]:
        messages = parcel.messages
        began = self.monotonic()
        left = ENQUEUE_SECONDS - (began - parcel.claimed_at)
        answers = await self.dispatcher.enqueue(messages, parcel.doubt, within=left)
        if left > 0 and not parcel.doubt:
            now = self.monotonic()
            until = max((message.not_before.monotonic for message in messages if message.not_before), default=began)
            has_waited = began < until <= now
            self.pace.learn(len(messages), now - (until if has_waited else began), is_part=has_waited)
        self._size -= len(messages)
        self._has_room.set()
        return answers

    def _confirm_all(self) -> None:
        pairs, self._unconfirmed = self._unconfirmed, []
        if pairs:
            task = asyncio.create_task(self._confirm(pairs))
            self._confirms.add(task)
            task.add_done_callback(self._end)

    async def _confirm(self, pairs: Sequence[tuple[Message, Delivery]]) -> None:
        try:
            for at in range(0, len(pairs), _CONFIRMED_AT_ONCE):
                messages, answers = zip(*pairs[at : at + _CONFIRMED_AT_ONCE], strict=True)
                self._counts += await self.dispatcher.confirm(messages, answers)
        finally:
            self._keys.difference_update(message.slip.key for message, _ in pairs)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._confirms.discard(task)
        if task is self._work:
            self._work = None
        failure = None if task.cancelled() else task.exception()
        if failure is None:
            return
        if not isinstance(failure, StoreUnavailable):
            self.cancel()
        self._failure = failure


class _Parcel(NamedTuple):
    """Messages that go out at one time; see `Outbox.put`."""

    at: float
    number: int
    messages: Sequence[Message]
    claimed_at: float
    doubt: str
    is_ahead: bool
    """Whether it was there before its time."""
