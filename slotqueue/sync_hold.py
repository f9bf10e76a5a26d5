"""One run of a slot in code without an event loop, from the begin that was granted to the end that is written."""

from __future__ import annotations

from types import TracebackType

from slotqueue.answers import Word
from slotqueue.current import CurrentSlot
from slotqueue.errors import StoreUnavailable
from slotqueue.events import Emit
from slotqueue.heartbeat import Heartbeat, Lease
from slotqueue.hold import Ending, Hold, Judge
from slotqueue.interruption import Interruption, RunInterrupted
from slotqueue.patience import ask_blocking
from slotqueue.protocols import SyncStore


class SyncHold(Hold):
    """`with hold: ...` runs a slot: a normal end finishes it, an exception ends it as the judge says.

    Past its lease a `complete` run is interrupted where that is possible, and so is any run that was taken over: then
    `RunInterrupted` comes out of the block, and `abandon` is to be called. Elsewhere the run goes on, and its end may
    be answered `STALE`.

    Args:
        interruption: of the thread that runs the slot; None where it cannot be interrupted.
    """

    def __init__(
        self,
        store: SyncStore,
        heartbeat: Heartbeat,
        emit: Emit,
        lease: Lease,
        judge: Judge,
        interruption: Interruption | None = None,
    ) -> None:
        super().__init__(store.verbs, heartbeat, emit, lease, judge)
        self.is_taken_over = False
        """Whether the lease was lost to another run; else, where it was lost, it only could not be renewed."""
        self._store = store
        self._interruption = interruption
        self._is_lost = self._is_left = False

    def __enter__(self) -> CurrentSlot:
        self.lease.on_stale = self._hear_stale
        self.lease.on_expired = self._hear_expired
        slot = self._enter()
        if self._interruption is not None:
            self._interruption.open()
        return slot

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, RunInterrupted):
            self.abandon()
            return
        if self._interruption is not None:
            self._interruption.close()
        self._leave_once()
        try:
            self._write(self._judged(error))
        finally:
            self._heartbeat.forget(self.lease)

    def abandon(self) -> None:
        """End an interrupted run without a word; an interruption may also come while `__exit__` begins."""
        if self._interruption is not None:
            self._interruption.close()
        self._heartbeat.forget(self.lease)
        self._leave_once()
        self.outcome = Word.STALE

    def _write(self, ending: Ending) -> None:
        command = self._command(ending)
        if command is None:
            return
        try:
            verdict, _ = ask_blocking(self._store.run, command, self._trying())
        except StoreUnavailable as unavailable:
            self._unwritten(ending, str(unavailable))
        else:
            self._written(ending, verdict)

    def _leave_once(self) -> None:
        if not self._is_left:
            self._is_left = True
            self._leave()

    def _hear_stale(self) -> None:
        if not self.is_taken_over:
            self.is_taken_over = True
            self._end("the slot was taken over", is_to_end=True)

    def _hear_expired(self) -> None:
        if self.run.terms.is_complete:
            self._end("it could not be renewed in time", is_to_end=True)
        else:
            self._end("it could not be renewed in time; the run goes on, a repeat would be worse", is_to_end=False)

    def _end(self, why: str, *, is_to_end: bool) -> None:
        """Report a lease that is lost, once, and interrupt the run; called in the heartbeat thread."""
        is_cancelled = is_to_end and self._interruption is not None
        if not self._is_lost:
            self._is_lost = True
            self._lost(why, is_cancelled=is_cancelled)
        if is_cancelled and self._interruption is not None:
            self._heartbeat.forget(self.lease)
            self._interruption.interrupt()
