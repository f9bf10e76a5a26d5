"""The ticker and the sweeper of a replica at work: two tasks of one event loop, neither of which dies silently."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from slotqueue.events import LoopDied
from slotqueue.replica import Replica

_STOP_SECONDS = 3.5
"""With what closing takes, a stop stays under 5 s, also while Redis is unreachable."""


class Loops:
    """Ticks and sweeps from now on, in the running event loop.

    Args:
        replica: whose ticker and sweeper. Redis may be down: they keep trying.
    """

    def __init__(self, replica: Replica) -> None:
        self._emit = replica.emit
        self._stopping = asyncio.Event()
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._tasks = [
            asyncio.create_task(replica.ticker.run(self._stopping), name="slotqueue-ticker"),
            asyncio.create_task(replica.sweeper.run(self._stopping), name="slotqueue-sweeper"),
        ]
        for task in self._tasks:
            task.add_done_callback(self._hear)

    @property
    def are_alive(self) -> bool:
        """Whether both go on."""
        return not any(task.done() for task in self._tasks)

    def call(self, change: Callable[[], object]) -> None:
        """Run something in the loop's own thread: at once where this is it, else soon."""
        if threading.get_ident() == self._thread:
            change()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(change)

    async def wait(self, until: asyncio.Event | None) -> None:
        """Wait until the event is set, or for ever.

        Raises:
            Exception: a loop ended by an error that nobody foresaw.
        """
        told = [asyncio.ensure_future(until.wait())] if until is not None else []
        try:
            done, _ = await asyncio.wait([*self._tasks, *told], return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in told:
                each.cancel()

    async def stop(self) -> None:
        """Finish the chunks in hand, and end."""
        self._stopping.set()
        _, unfinished = await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hear(self, task: asyncio.Task[None]) -> None:
        if self._stopping.is_set():
            return
        error = None if task.cancelled() else task.exception()
        self._emit(LoopDied(task.get_name(), f"{type(error).__name__}: {error}" if error else "it was cancelled"))
