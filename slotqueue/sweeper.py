"""The sweeper: one pass takes over open slots past their deadline and enqueues them again; `run` is the loop.

"Not done" alone never justifies a re-enqueue: what may be taken over, and what becomes of it, is decided in the store
by the record's own deadline and policy.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

from slotqueue.answers import Takeover, Word
from slotqueue.clock import RedisClock
from slotqueue.dead_letters import DeadLetters
from slotqueue.dispatch import Dispatcher, message_for
from slotqueue.errors import InvalidSlotKey, StoreUnavailable
from slotqueue.events import (
    ClockStepped,
    DeadLetterTold,
    Emit,
    JobUnknown,
    PassFailed,
    SlotBroken,
    SlotDead,
    SlotEnded,
    SlotLetGo,
    SlotLost,
    SlotOrdered,
    SlotTakenOver,
)
from slotqueue.jobs import Job
from slotqueue.messages import Message, Slip, Waiting
from slotqueue.planner import Planner
from slotqueue.protocols import Process, ReplicaStore
from slotqueue.slots import SlotState, parse_key, to_ms

_BATCH = 200
_PIECE_SECONDS = 1.0
"""What takes longer to enqueue is taken over in smaller pieces: a queue that is slow refuses all of a large one."""
_BATCHES_A_SWEEP = 50
_LOOKED_UP_A_SWEEP = 100
_BY_HAND = {"ordered", *(state.value for state in SlotState if not state.is_open)}
"""What an operator's slot was before: an ended one, or none at all."""


class Sweeper:
    """Looks after open slots.

    Args:
        store: the coordinating Redis.
        planner: tells which jobs this replica knows.
        dispatcher: takes what is to be enqueued again.
        clock: Redis's time, shared with the ticker.
        replica: this process.
        emit: takes events.
        every: seconds between two passes, about: replicas drift apart on purpose.
        letters: makes a job of each dead letter; None where nobody is told.
    """

    def __init__(
        self,
        store: ReplicaStore,
        planner: Planner,
        dispatcher: Dispatcher,
        clock: RedisClock,
        replica: Process,
        emit: Emit,
        *,
        every: float,
        letters: DeadLetters | None = None,
    ) -> None:
        self.store = store
        self.planner = planner
        self.dispatcher = dispatcher
        self.clock = clock
        self.replica = replica
        self.emit = emit
        self.every = every
        self.letters = letters
        self._rank = 0
        self._room = _BATCH

    async def sweep(self, stopping: asyncio.Event | None = None) -> Counter[str]:
        """Make one pass.

        Args:
            stopping: once set, the piece in hand is finished and the rest is left.

        Returns:
            How many slots were overdue, and what became of them: enqueue, done, missed, lost, dead, later, ...

        Raises:
            StoreUnavailable: ask again later; nothing is lost.
        """
        counts: Counter[str] = Counter()
        for _ in range(_BATCHES_A_SWEEP):
            sent = self.clock.monotonic()
            overdue = await self.store.run(self.store.verbs.overdue(_BATCH))
            if step := self.clock.observe(sent, overdue.now):
                self.emit(ClockStepped(step))
            if not overdue.keys:
                break
            moved, left = False, overdue.keys
            while left and not (stopping and stopping.is_set()):
                piece, left = left[: self._room], left[self._room :]
                moved |= await self._take_over(piece, counts)
            if len(overdue.keys) < _BATCH or not moved or left:
                break
        if overdue.open:
            await self._look_up(counts)
        if self.letters is not None and self.letters.epoch():
            await self._tell(self.letters, counts)
        return counts

    async def run(self, stopping: asyncio.Event) -> None:
        """Sweep until `stopping` is set. No outage of Redis ends it."""
        while not stopping.is_set():
            try:
                await self.sweep(stopping)
            except StoreUnavailable:
                self.clock.lose_contact()  # the ticker reports the outage
            except Exception as error:  # noqa: BLE001 - the loop must outlive what nobody foresaw; the fact is reported as critical
                self.emit(PassFailed("sweep", f"{type(error).__name__}: {error}"))
            try:
                async with asyncio.timeout(self.every * random.uniform(0.8, 1.2)):
                    await stopping.wait()
            except TimeoutError:
                continue

    async def _take_over(self, keys: Sequence[str], counts: Counter[str]) -> bool:
        """Take over a piece of a batch. False where no slot of it moved, so that the same ones would be next again."""
        jobs = [self._job_of(key) for key in keys]
        if self.letters is not None:
            jobs = [mine or told for mine, told in zip(jobs, await self.letters.jobs_of(keys), strict=True)]
        tasks = [job.task_name if job else "" for job in jobs]
        contact = self.clock.contact_ms()
        command = self.store.verbs.take_over(keys, tasks, replica=self.replica.id, contact_ms=contact)
        messages: list[Message] = []
        takeovers, doubt = await self.store.run_acknowledged(command)
        for job, takeover in zip(jobs, takeovers, strict=True):
            counts["overdue"] += 1
            counts[takeover.word] += 1
            self._report(takeover)
            if takeover.slip and job:
                messages.append(message_for(job, takeover.slip, takeover.before))
        if messages:
            began = self.clock.monotonic()
            counts += await self.dispatcher.send(messages, doubt)
            self._learn(self.clock.monotonic() - began)
        return any(takeover.word is not Word.LATER for takeover in takeovers)

    def _learn(self, seconds: float) -> None:
        """Choose the size of the next pieces by how long a piece took to enqueue."""
        if seconds > _PIECE_SECONDS:
            self._room = max(1, self._room // 2)
        elif seconds < _PIECE_SECONDS / 4:
            self._room = min(_BATCH, self._room * 2)

    async def _tell(self, letters: DeadLetters, counts: Counter[str]) -> None:
        """Claim and enqueue a slot for each dead letter that is new."""
        offers = await letters.find()
        if not offers:
            return
        command = self.store.verbs.claim(offers, replica=self.replica.id, epoch=letters.epoch())
        claims, doubt = await self.store.run_acknowledged(command)
        if not claims.is_same_epoch:
            return
        letters.settle(offers)
        messages = []
        for (job, slot), verdict in zip(((each.job, each.slot) for each in offers), claims.verdicts, strict=True):
            if verdict.word is Word.WON:
                fire, start = to_ms(slot.fire_time), to_ms(slot.start)
                slip = Slip(slot.key, 0, fire, start, job.task_name, job.version, job.terms_text)
                messages.append(message_for(job, slip))
                self.emit(DeadLetterTold(str(job.kwargs["slot"]), str(job.kwargs["job"]), job.task))
        if messages:
            counts += await self.dispatcher.send(messages, doubt)

    def _job_of(self, key: str) -> Job | None:
        try:
            return self.planner.job(parse_key(key).job)
        except InvalidSlotKey:
            return None

    def _report(self, takeover: Takeover) -> None:
        key, word, detail = takeover.key, takeover.word, takeover.detail
        job = _job_name(key)
        if takeover.slip and takeover.before == SlotState.HELD:
            self.emit(SlotLetGo(key, job, self.replica.id, takeover.slip.n))
        elif takeover.slip and takeover.before in _BY_HAND:
            self.emit(SlotOrdered(key, job, self.replica.id, takeover.slip.n))
        elif takeover.slip:
            self.emit(SlotTakenOver(key, job, self.replica.id, takeover.before, takeover.slip.n))
        elif word is Word.LOST:
            self.emit(SlotLost(key, job, detail))
        elif word is Word.DEAD:
            self.emit(SlotDead(key, job, detail))
        elif word is Word.BROKEN:
            self.emit(SlotBroken(key, job, detail))
        elif word is Word.UNKNOWN:
            self.emit(JobUnknown(key, job))
        elif word in (Word.MISSED, Word.SKIPPED, Word.DONE):
            self.emit(SlotEnded(key, job, word.value, detail))

    async def _look_up(self, counts: Counter[str]) -> None:
        """Ask the worker systems about some messages that are out: what they gave up without a word is rejected."""
        keys = await self.store.run(self.store.verbs.open_keys(self._rank, _LOOKED_UP_A_SWEEP))
        self._rank = self._rank + len(keys) if len(keys) == _LOOKED_UP_A_SWEEP else 0
        if not keys:
            return
        by_kind: dict[str, list[Waiting]] = {}
        for each in await self.store.run(self.store.verbs.waiting(keys)):
            by_kind.setdefault(each.task.partition(":")[0], []).append(each)
        for kind, waiting in by_kind.items():
            enqueuer = self.dispatcher.enqueuers.get(kind)
            if enqueuer is None:
                continue
            numbers = {each.key: each.n for each in waiting}
            for key, reason in (await enqueuer.given_up(waiting)).items():
                await self._reject(key, numbers[key], reason, counts)

    async def _reject(self, key: str, n: int, reason: str, counts: Counter[str]) -> None:
        verdict = await self.store.run(self.store.verbs.reject(key, n, reason))
        counts["rejected"] += verdict.word is not Word.STALE
        if verdict.word is Word.DEAD:
            self.emit(SlotDead(key, _job_name(key), reason))


def _job_name(key: str) -> str:
    try:
        return parse_key(key).job
    except InvalidSlotKey:
        return key
