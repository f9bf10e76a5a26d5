"""One run of a slot, from the begin that was granted to the end that is written; `sync_hold` is for sync code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType

from slotqueue.answers import Run, Verdict, Word
from slotqueue.current import CurrentSlot, entered
from slotqueue.errors import StoreUnavailable
from slotqueue.events import Emit
from slotqueue.guard_events import EndUnwritten, LeaseLost, RunBegan, RunDone, RunFailed, RunPostponed, RunStale
from slotqueue.heartbeat import Heartbeat, Lease
from slotqueue.patience import Until, ask, unharmed
from slotqueue.protocols import Command, Store, Verbs
from slotqueue.slots import parse_key

_END_SECONDS = 3.0
"""How long, at least, the end of a run is tried, also when its lease is past."""
_LONGEST_ERROR = 1024


@dataclass(frozen=True, slots=True)
class Finish:
    """The work is done."""


@dataclass(frozen=True, slots=True)
class Postpone:
    """The worker system itself will run the slot again, in `delay_ms`; where its message is gone, the sweep will."""

    why: str
    delay_ms: int = 0
    is_message_gone: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """The worker system has given up."""

    error: str


@dataclass(frozen=True, slots=True)
class Vanish:
    """Say nothing: somebody outside of this process knows better, or else the lease passes."""


Ending = Finish | Postpone | Fail | Vanish
Judge = Callable[[BaseException], Ending]
"""Says what an exception out of a run means in the worker system."""


def describe(error: BaseException) -> str:
    """An error in one text of at most 1 KB."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - a `__str__` that raises must not hide the error it belongs to
        text = type(error).__name__
    return text.encode(errors="replace")[:_LONGEST_ERROR].decode(errors="ignore")


def judge_plainly(error: BaseException) -> Postpone | Fail:
    """Take a cancellation for a hand-back, everything else for a failure."""
    return Postpone("cancelled") if isinstance(error, asyncio.CancelledError) else Fail(describe(error))


class Hold:
    """One run from its begin to its end, for async and for sync code.

    `outcome` is the store's answer to the end; `STALE` where the slot was taken over, None where none was written.
    """

    def __init__(self, verbs: Verbs, heartbeat: Heartbeat, emit: Emit, lease: Lease, judge: Judge) -> None:
        self.lease = lease
        self.outcome: Word | None = None
        self._verbs = verbs
        self._heartbeat = heartbeat
        self._emit = emit
        self._judge = judge
        self._job = parse_key(lease.run.slip.key).job
        self._began_at = monotonic()
        self._entered: AbstractContextManager[CurrentSlot] = entered(lease.run)

    @property
    def run(self) -> Run:
        """What begin granted."""
        return self.lease.run

    def _enter(self) -> CurrentSlot:
        run = self.run
        self._emit(RunBegan(run.slip.key, self._job, run.worker, run.attempt, run.fence, run.waited_ms))
        self._began_at = monotonic()
        self._heartbeat.watch(self.lease)
        return self._entered.__enter__()

    def _leave(self) -> None:
        self._entered.__exit__(None, None, None)

    def _judged(self, error: BaseException | None) -> Ending:
        return Finish() if error is None else self._judge(error)

    def _command(self, ending: Ending) -> Command[Verdict] | None:
        match ending:
            case Finish():
                return self._verbs.finish(self.run)
            case Postpone(why, delay_ms, is_message_gone):
                return self._verbs.postpone(self.run, delay_ms, why, is_message_gone=is_message_gone)
            case Fail(error):
                return self._verbs.fail(self.run, error)
            case Vanish():
                return None

    def _trying(self) -> Until:
        """Until when to try to write the end: as long as the lease lasts, and a few seconds in any case."""
        least = monotonic() + _END_SECONDS
        return lambda: max(least, self.lease.good_until)

    def _written(self, ending: Ending, verdict: Verdict) -> None:
        self.outcome = verdict.word
        key, job, worker = self.run.slip.key, self._job, self.run.worker
        match verdict.word, ending:
            case Word.STALE, _:
                self._emit(RunStale(key, job, worker))
            case Word.BROKEN, _:
                self._unwritten(ending, f"its keys in Redis cannot be used: {verdict.detail}")
            case _, Finish():
                self._emit(RunDone(key, job, worker, monotonic() - self._began_at))
            case _, Postpone(why, delay_ms):
                self._emit(RunPostponed(key, job, why, delay_ms))
            case word, Fail(error):
                self._emit(RunFailed(key, job, word.value, error))

    def _unwritten(self, ending: Ending, problem: str) -> None:
        self._emit(EndUnwritten(self.run.slip.key, self._job, type(ending).__name__.lower(), problem))

    def _lost(self, why: str, *, is_cancelled: bool) -> None:
        self._emit(LeaseLost(self.run.slip.key, self._job, self.run.worker, why, is_cancelled))


class AsyncHold(Hold):
    """`async with hold: ...` runs a slot: a normal end finishes it, an exception ends it as the judge says.

    Past its lease a `complete` run is cancelled, and so is any run that was taken over; the block then ends without an
    exception, and with `outcome` `STALE`.
    """

    def __init__(self, store: Store, heartbeat: Heartbeat, emit: Emit, lease: Lease, judge: Judge) -> None:
        super().__init__(store.verbs, heartbeat, emit, lease, judge)
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._has_cancelled = self._is_ending = False
        self._give_up_at: float | None = None
        self._writing: asyncio.Timeout | None = None

    async def __aenter__(self) -> CurrentSlot:
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task else 0
        self.lease.on_stale = self._hear_stale
        slot = self._enter()
        self._timer: asyncio.Handle = self._loop.call_soon(self._check_lease)
        return slot

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._is_ending = True
        self._timer.cancel()
        self._leave()
        try:
            if self._has_cancelled and error is not None:
                self.outcome = Word.STALE
                return self._is_ours_alone(error)
            await unharmed(self._write(self._judged(error)))
        finally:
            self._heartbeat.forget(self.lease)
        return False

    async def _write(self, ending: Ending) -> None:
        command = self._command(ending)
        if command is None:
            return
        try:
            async with asyncio.timeout_at(self._give_up_at) as self._writing:
                verdict, _ = await ask(self._store.run, command, self._trying())
        except StoreUnavailable as unavailable:
            self._unwritten(ending, str(unavailable))
        except TimeoutError:
            self._unwritten(ending, "the worker could not wait any longer")
        else:
            self._written(ending, verdict)
        finally:
            self._writing = None

    def give_up_at(self, when: float) -> None:
        """Try to write the end until then and no longer, by the event loop's clock: the process is about to go."""
        self._give_up_at = when
        if self._writing is not None:
            self._writing.reschedule(when)

    def _is_ours_alone(self, error: BaseException) -> bool:
        """Take our own cancellation back; whether nobody else has cancelled the task as well."""
        if not isinstance(error, Exception | asyncio.CancelledError):
            return False
        return self._task is None or self._task.uncancel() <= self._cancels_before

    def _check_lease(self) -> None:
        left = self.lease.left()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_lease)
        elif self.run.terms.is_complete:
            self._stop("it could not be renewed in time")
        else:
            self._lost("it could not be renewed in time; the run goes on, a repeat would be worse", is_cancelled=False)

    def _hear_stale(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, "the slot was taken over")

    def _stop(self, why: str) -> None:
        if not self._is_ending and not self._has_cancelled and self._task is not None:
            self._has_cancelled = True
            self._lost(why, is_cancelled=True)
            self._task.cancel(why)
