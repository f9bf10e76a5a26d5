"""The guard: begin, run under a lease, and end. With `hold`, the one place that knows what a worker tells the store.

A guard that cannot reach the store hands the message back and never runs it unguarded; so does one whose begin too few
replicas of Redis acknowledge. One that cannot write the end of a run keeps trying for as long as the lease lasts; then
the policy decides. A clean hand-back is never mistaken for a crash: begin and end are carried through even while the
worker is being cancelled.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic, sleep

from slotqueue.answers import Dropped, Run, Verdict, Word
from slotqueue.errors import StoreUnavailable
from slotqueue.events import Emit
from slotqueue.guard_events import MessageDropped, RunFailed, RunPostponed
from slotqueue.heartbeat import STOP_SECONDS, Heartbeat, Lease
from slotqueue.hold import AsyncHold, Judge, judge_plainly
from slotqueue.interruption import Interruption
from slotqueue.messages import Refused, Slip
from slotqueue.patience import Until, ask, ask_blocking, unharmed
from slotqueue.process import about_process, process_id
from slotqueue.protocols import Command, Process, Store, SyncStore
from slotqueue.slots import parse_key
from slotqueue.sync_hold import SyncHold

BEGIN_SECONDS = 2.5
"""How long a begin is repeated while the store does not answer."""
_MOST_UNANSWERED = 1000
_GIVEN_BACK_AT_ONCE = 500
_LOOK_EVERY_SECONDS = 0.02


def worker_process(tasks: Sequence[str], **about: object) -> Process:
    """Name this process as a worker; to be called after any fork.

    Args:
        tasks: with their worker system: "arq:send_digest".
        about: what else an operator may want to see, in what JSON can say.
    """
    return Process(process_id(), about_process(**about, tasks=list(tasks)), tuple(tasks))


class Guard:
    """What guards of async and of sync code share: who we are, the heartbeat, and begins without an answer.

    Args:
        worker: who we are, named after any fork: see `worker_process`.
        open_heartbeat_store: makes the connection of the heartbeat thread.
        emit: told what happens.
    """

    def __init__(self, worker: Process, *, open_heartbeat_store: Callable[[], SyncStore], emit: Emit) -> None:
        self.worker = worker
        self.emit = emit
        self.heartbeat = Heartbeat(worker, open_heartbeat_store, emit)
        self._unanswered: OrderedDict[str, str] = OrderedDict()

    def start(self) -> None:
        """Enlist the worker from now on; returns at once, also while Redis is away."""
        self.heartbeat.start()

    def _token(self, key: str) -> str:
        """A token for this delivery.

        Where the begin of an earlier delivery to this process was never answered, its token: that delivery was handed
        back unrun, and its begin may have been heard all the same.
        """
        return self._unanswered.pop(key, None) or secrets.token_hex(8)

    def _keep_unanswered(self, key: str, token: str) -> None:
        self._unanswered[key] = token
        if len(self._unanswered) > _MOST_UNANSWERED:
            self._unanswered.popitem(last=False)

    def _in_doubt(self, run: Run, doubt: str, verdict: Verdict) -> StoreUnavailable:
        """What to raise where a failover might forget a begin, once its run is handed back.

        The message is handed back as well, for a server that has forgotten both. For one that has not, the sweep need
        not wait for that message, which tells no fence and so might not begin.
        """
        if verdict.word is Word.YES:
            self.emit(RunPostponed(run.slip.key, parse_key(run.slip.key).job, doubt, 0))
        return StoreUnavailable(doubt)

    def _dropped(self, slip: Slip, answer: Dropped) -> Dropped:
        if answer.why not in (Word.BUSY, Word.BROKEN):
            self.emit(MessageDropped(slip.key, parse_key(slip.key).job, answer.why.value))
        return answer


class AsyncGuard(Guard):
    """The guard of a worker that runs slots in an event loop.

    Args:
        worker: who we are, named after any fork: see `worker_process`.
        store: used in one event loop.
        open_heartbeat_store: makes the connection of the heartbeat thread.
        emit: told what happens.
    """

    def __init__(
        self, worker: Process, store: Store, *, open_heartbeat_store: Callable[[], SyncStore], emit: Emit
    ) -> None:
        super().__init__(worker, open_heartbeat_store=open_heartbeat_store, emit=emit)
        self._store = store

    async def begin(
        self, slip: Slip, *, from_fence: str | int, judge: Judge = judge_plainly, patience: float = BEGIN_SECONDS
    ) -> AsyncHold | Dropped:
        """Ask to run a slot.

        Args:
            slip: what the message says.
            from_fence: of the run that sent the message, `ANY_FENCE` where the worker system cannot tell.
            judge: says how the run ends where it ends in an exception.
            patience: seconds to repeat the question while the store does not answer.

        Returns:
            A hold to run the slot in, or why it must not run.

        Raises:
            StoreUnavailable: hand the message back to the worker system, unrun.
            CancelledError: cancelled meanwhile; a begin that was granted has been ended as the judge says.
        """
        token, until = self._token(slip.key), monotonic() + patience
        command = self._store.verbs.begin(slip, token=token, worker=self.worker.id, from_fence=from_fence)
        try:
            (answer, sent_at), is_cancelled = await unharmed(self._ask_to_begin(command, lambda: until))
        except StoreUnavailable:
            self._keep_unanswered(slip.key, token)
            raise
        if isinstance(answer, Run):
            hold = AsyncHold(self._store, self.heartbeat, self.emit, Lease(answer, sent_at), judge)
            if is_cancelled:
                async with hold:
                    raise asyncio.CancelledError
            return hold
        if is_cancelled:
            raise asyncio.CancelledError
        return self._dropped(slip, answer)

    async def _ask_to_begin(self, command: Command[Run | Dropped], until: Until) -> tuple[Run | Dropped, float]:
        (answer, doubt), sent_at = await ask(self._store.run_acknowledged, command, until)
        while wait := _seconds_early(answer):
            await asyncio.sleep(wait)
            (answer, doubt), sent_at = await ask(self._store.run_acknowledged, command, until)
        if doubt and isinstance(answer, Run):
            handing_back = self._store.verbs.postpone(answer, 0, doubt, is_message_gone=True)
            verdict, _ = await ask(self._store.run, handing_back, until)
            raise self._in_doubt(answer, doubt, verdict)
        return answer, sent_at

    async def enlist(self, tasks: tuple[str, ...]) -> None:
        """Know these tasks from now on, and say so.

        Raises:
            StoreUnavailable: ask again.
        """
        self.worker = self.heartbeat.worker = replace(self.worker, tasks=tasks)
        await self._store.run(self._store.verbs.enlist(self.worker))

    async def give_back(self, slips: Sequence[Slip], why: str) -> None:
        """Say that messages which are nowhere else will not be run here.

        Raises:
            StoreUnavailable: not said; the sweep will find these slots by their deadline.
        """
        for at in range(0, len(slips), _GIVEN_BACK_AT_ONCE):
            some = slips[at : at + _GIVEN_BACK_AT_ONCE]
            await self._store.run(self._store.verbs.release([(slip, Refused(why)) for slip in some]))

    async def stop(self, within: float = STOP_SECONDS) -> None:
        """Say that the worker leaves, and close the connections; takes so many seconds at most."""
        thread = self.heartbeat.let_go()
        until = monotonic() + within
        while thread is not None and thread.is_alive() and monotonic() < until:  # noqa: ASYNC110 - a thread has no event
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        self.heartbeat.stop(within=0)
        await self._store.close()


class SyncGuard(Guard):
    """The guard of a worker that runs slots in threads or processes.

    Args:
        worker: who we are, named after any fork: see `worker_process`.
        store: safe to share between threads.
        open_heartbeat_store: makes the connection of the heartbeat thread.
        emit: told what happens.
    """

    def __init__(
        self, worker: Process, store: SyncStore, *, open_heartbeat_store: Callable[[], SyncStore], emit: Emit
    ) -> None:
        super().__init__(worker, open_heartbeat_store=open_heartbeat_store, emit=emit)
        self._store = store

    def begin(
        self,
        slip: Slip,
        *,
        from_fence: str | int,
        judge: Judge = judge_plainly,
        patience: float = BEGIN_SECONDS,
        token: str | None = None,
        interruption: Interruption | None = None,
    ) -> SyncHold | Dropped:
        """Ask to run a slot: see `AsyncGuard.begin`.

        Args:
            slip, from_fence, judge, patience: see there.
            token: of this delivery, where somebody outside of this process must know it as well.
            interruption: of this thread, where a run that loses its lease is to be ended.

        Raises:
            StoreUnavailable: hand the message back to the worker system, unrun.
        """
        mine, until = token or self._token(slip.key), monotonic() + patience
        command = self._store.verbs.begin(slip, token=mine, worker=self.worker.id, from_fence=from_fence)
        try:
            answer, sent_at = self._ask_to_begin(command, lambda: until)
        except StoreUnavailable:
            if token is None:
                self._keep_unanswered(slip.key, mine)
            raise
        if isinstance(answer, Run):
            lease = Lease(answer, sent_at)
            return SyncHold(self._store, self.heartbeat, self.emit, lease, judge, interruption)
        return self._dropped(slip, answer)

    def _ask_to_begin(self, command: Command[Run | Dropped], until: Until) -> tuple[Run | Dropped, float]:
        (answer, doubt), sent_at = ask_blocking(self._store.run_acknowledged, command, until)
        while wait := _seconds_early(answer):
            sleep(wait)
            (answer, doubt), sent_at = ask_blocking(self._store.run_acknowledged, command, until)
        if doubt and isinstance(answer, Run):
            handing_back = self._store.verbs.postpone(answer, 0, doubt, is_message_gone=True)
            verdict, _ = ask_blocking(self._store.run, handing_back, until)
            raise self._in_doubt(answer, doubt, verdict)
        return answer, sent_at

    def fail_unheard(self, slip: Slip, token: str, error: str, patience: float) -> None:
        """Say that a run ended whose process is gone, and can say nothing itself. Blocks for `patience` seconds.

        Raises:
            StoreUnavailable: not written; the sweep will find the lease passed.
        """
        unheard = Run(slip, 0, token, self.worker.id, 0)
        self._tell(slip, self._store.verbs.fail(unheard, error), error, patience)

    def reject(self, slip: Slip, why: str, patience: float) -> None:
        """Say that the worker system dropped a message unrun. Blocks for `patience` seconds.

        Raises:
            StoreUnavailable: not written; the sweep will see to the slot when its deadline passes.
        """
        self._tell(slip, self._store.verbs.reject(slip.key, slip.n, why), why, patience)

    def _tell(self, slip: Slip, command: Command[Verdict], why: str, patience: float) -> None:
        until = monotonic() + patience
        verdict, _ = ask_blocking(self._store.run, command, lambda: until)
        if verdict.word in (Word.DEAD, Word.FAILED):
            self.emit(RunFailed(slip.key, parse_key(slip.key).job, verdict.word.value, why))

    def stop(self) -> None:
        """Say that the worker leaves, and close the connections; takes a few seconds at most."""
        self.heartbeat.stop()
        self._store.close()


def _seconds_early(answer: Run | Dropped) -> float:
    """How long until it is time for a slot, as the store answered; 0.0 where it is."""
    if isinstance(answer, Dropped) and answer.why is Word.EARLY:
        return int(answer.detail) / 1000
    return 0.0
