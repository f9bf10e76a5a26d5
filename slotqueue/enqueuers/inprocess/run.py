"""One slot in this process: begin it, call its function under the lease, and say how that ended."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from concurrent.futures import Future

from slotqueue.answers import Dropped, Word
from slotqueue.enqueuers.inprocess.functions import Function
from slotqueue.errors import StoreUnavailable
from slotqueue.events import SlotBroken
from slotqueue.guard import AsyncGuard
from slotqueue.guard_events import JobRaised, RunLeftBehind
from slotqueue.hold import AsyncHold, Fail, Postpone, Vanish, describe
from slotqueue.messages import Message
from slotqueue.slots import parse_key

_ASK_AGAIN_SECONDS = 1.0
_NO_FENCE = ""
"""No run sends messages here, so none is the retry of an earlier one."""


class SlotRun:
    """Runs one slot, from the begin to the end.

    Args:
        message: of the slot.
        function: to call.
        guard: of this process.
    """

    def __init__(self, message: Message, function: Function, guard: AsyncGuard) -> None:
        self.message = message
        self.is_answered = False
        """Whether the store has said if it may run."""
        self.thread: Future[object] | None = None
        """Where a sync function runs; nobody can end it, so it may outlive the run."""
        self._function = function
        self._guard = guard
        self._job = parse_key(message.slip.key).job
        self._hold: AsyncHold | None = None
        self._is_stopping = False

    @property
    def is_in_thread(self) -> bool:
        """Whether a thread still runs the function."""
        return self.thread is not None and not self.thread.done()

    def stop(self, within: float) -> None:
        """Be about to be cancelled; the end is tried for so many seconds at most."""
        self._is_stopping = True
        if self._hold is not None:
            self._hold.give_up_at(asyncio.get_running_loop().time() + within)

    async def run(self) -> None:
        """Run the slot, or learn that it must not run.

        Raises:
            CancelledError: cancelled; the slot is handed back.
        """
        answer = await self._begin()
        if isinstance(answer, Dropped):
            if answer.why is Word.BROKEN:
                self._guard.emit(SlotBroken(self.message.slip.key, self._job, answer.detail))
            return
        self._hold = answer
        try:
            async with answer:
                await self._call()
        except asyncio.CancelledError:
            if _is_cancelled_outside():
                raise
            self._report()
        except (Exception, SystemExit):  # noqa: BLE001 - also a job that exits ends its run, and not the process
            self._report()

    async def _begin(self) -> AsyncHold | Dropped:
        """Ask until the store answers: where only the answer was lost, the next begin finds its own lease."""
        while True:
            try:
                answer = await self._guard.begin(self.message.slip, from_fence=_NO_FENCE, judge=self._judge)
            except StoreUnavailable:
                if self._is_stopping:
                    raise asyncio.CancelledError from None
                await asyncio.sleep(_ASK_AGAIN_SECONDS)
            else:
                self.is_answered = True
                return answer

    async def _call(self) -> None:
        message = self.message
        if self._function.is_async:
            result = self._function.call(*message.args, **message.kwargs)
        else:
            self.thread = self._function.in_thread(message.args, message.kwargs)
            result = await asyncio.wrap_future(self.thread)
        if inspect.isawaitable(result):  # also of a function that does not look async, such as a decorated one
            await result

    def _judge(self, error: BaseException) -> Postpone | Fail | Vanish:
        if not isinstance(error, asyncio.CancelledError) or not _is_cancelled_outside():
            return Fail(describe(error))
        handed_back = Postpone("the replica stops", is_message_gone=True)
        if not self.is_in_thread:
            return handed_back
        is_complete = self._hold is not None and self._hold.run.terms.is_complete
        self._guard.emit(RunLeftBehind(self.message.slip.key, self._job, is_complete))
        return handed_back if is_complete else Vanish()

    def _report(self) -> None:
        self._guard.emit(JobRaised(self.message.slip.key, self._job, traceback.format_exc().rstrip()))


def _is_cancelled_outside() -> bool:
    """Whether somebody cancelled this task; a function may raise `CancelledError` all by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
