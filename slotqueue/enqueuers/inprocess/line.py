"""The slots of this process: some run, the others wait their turn in the order in which they came.

A slot that waits is `queued`, under a deadline of half a minute: where it waits longer, or its process is killed, a
sweep enqueues it again, on a replica that has a hand free perhaps; begin absorbs the copy that is left.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from time import monotonic

from slotqueue.enqueuers.inprocess.functions import Function
from slotqueue.enqueuers.inprocess.run import SlotRun
from slotqueue.events import PassFailed
from slotqueue.guard import AsyncGuard
from slotqueue.messages import Message, Slip

_OWN_END_SECONDS = 1.0
"""When the replica stops, what runs may go on for so long: most functions end by themselves."""


class Line:
    """Runs slots, in the event loop in which it was made.

    Args:
        guard: of this process.
        concurrency: how many run at once, threads included.
    """

    def __init__(self, guard: AsyncGuard, concurrency: int) -> None:
        self.is_stopping = False
        self._guard = guard
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, tuple[Message, Function]] = {}
        self._runs: dict[asyncio.Task[None], SlotRun] = {}
        self._left_behind = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def take(self, message: Message, function: Function) -> bool:
        """Take a message in, in the place of an earlier one of its slot; False where there was one."""
        is_new = message.slip.key not in self._waiting
        self._waiting[message.slip.key] = (message, function)
        self._move_up()
        return is_new

    async def wait_until_idle(self) -> None:
        """Wait until nothing waits and nothing runs."""
        await self._idle.wait()

    async def stop(self, within: float) -> list[Slip]:
        """Let nothing begin any more, and hand back what does not end by itself; takes so many seconds at most.

        Returns:
            What never began; it is to be given back.
        """
        until = monotonic() + within
        self.is_stopping = True
        unrun = [message.slip for message, _ in self._waiting.values()]
        self._waiting.clear()
        self._move_up()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_OWN_END_SECONDS, within / 3)):
                await self._idle.wait()
        runs = dict(self._runs)
        for task, run in runs.items():
            run.stop(within=(until - monotonic()) * 0.9)
            task.cancel()
        if runs:
            await asyncio.wait(runs, timeout=until - monotonic())
        return unrun + [run.message.slip for run in runs.values() if not run.is_answered]

    def _move_up(self) -> None:
        while self._waiting and len(self._runs) + self._left_behind < self._concurrency:
            key = next(iter(self._waiting))
            run = SlotRun(*self._waiting.pop(key), self._guard)
            task = self._loop.create_task(run.run(), name=f"slotqueue {key}")
            self._runs[task] = run
            task.add_done_callback(self._hear_end)
        if self._waiting or self._runs:
            self._idle.clear()
        else:
            self._idle.set()

    def _hear_end(self, task: asyncio.Task[None]) -> None:
        run = self._runs.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._guard.emit(PassFailed(f"run of {run.message.slip.key}", f"{type(error).__name__}: {error}"))
        if run.thread is not None and run.is_in_thread:
            self._left_behind += 1
            run.thread.add_done_callback(self._hear_thread)
        self._move_up()

    def _hear_thread(self, _ended: Future[object]) -> None:
        """Called in a thread whose run was over before it."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._forget_thread)

    def _forget_thread(self) -> None:
        self._left_behind -= 1
        self._move_up()
