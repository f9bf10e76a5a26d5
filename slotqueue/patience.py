"""Asking a store that may be away: again and again until a deadline, and to the end even while being cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from time import monotonic
from typing import Any, TypeVar

from slotqueue.errors import StoreUnavailable
from slotqueue.protocols import Command

C = TypeVar("C")
T = TypeVar("T")

Until = Callable[[], float]
"""The deadline by the monotonic clock; asked anew each time, since a lease may be renewed meanwhile."""

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0


async def ask(send: Callable[[Command[C]], Awaitable[T]], command: Command[C], until: Until) -> tuple[T, float]:
    """Send a command until it is answered.

    Args:
        send: `run` of a store, or `run_acknowledged`.
        command: what to send.
        until: when to give up.

    Returns:
        The answer, and when the question that was answered had been sent, by the monotonic clock.

    Raises:
        StoreUnavailable: not answered by the deadline; its effect is not known.
    """
    pauses = _pauses(until)
    while True:
        sent_at = monotonic()
        try:
            return await send(command), sent_at
        except StoreUnavailable:
            pause = next(pauses, None)
            if pause is None:
                raise
        await asyncio.sleep(pause)


def ask_blocking(send: Callable[[Command[C]], T], command: Command[C], until: Until) -> tuple[T, float]:
    """Do the same in a thread: see `ask`."""
    pauses = _pauses(until)
    while True:
        sent_at = monotonic()
        try:
            return send(command), sent_at
        except StoreUnavailable:
            pause = next(pauses, None)
            if pause is None:
                raise
        time.sleep(pause)


def _pauses(until: Until) -> Iterator[float]:
    pause = _FIRST_PAUSE
    while (left := until() - monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def unharmed(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Carry work through, however often this task is cancelled meanwhile.

    Returns:
        What the work returned, and whether this task was cancelled; the caller decides what that means.
    """
    task = asyncio.ensure_future(work)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            is_cancelled = True
    return task.result(), is_cancelled
