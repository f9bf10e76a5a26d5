"""The ticker: one pass is due -> claim -> enqueue -> confirm; `run` is the loop around it.

Memory advances only after the store answered, so a slot that could not be offered stays due. Claims are made in
chunks whose enqueueing takes 2 s at most, well inside the grace after which a sweep takes a claimed slot over.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from slotqueue.answers import Claims, Offer, Verdict, Word
from slotqueue.clock import RedisClock
from slotqueue.dispatch import ENQUEUE_SECONDS, Dispatcher, message_for
from slotqueue.errors import StoreUnavailable
from slotqueue.events import (
    Emit,
    JobTroubled,
    PassFailed,
    SlotBroken,
    SlotClaimed,
    SlotHeld,
    SlotSkipped,
    SlotTaken,
    is_heard,
)
from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Slip
from slotqueue.planner import Due, Planner
from slotqueue.protocols import Process, ReplicaStore
from slotqueue.registrar import Registrar
from slotqueue.slots import utc_ms
from slotqueue.stored_jobs import Build

_CHUNK_SECONDS = 1.0
_FIRST_CHUNK, _UNTRIED_CHUNK, _LARGEST_CHUNK = 20, 400, 1000
_REGISTER_CHUNK = 1000
_REGISTER_EVERY_SECONDS = 300.0
_LONGEST_SLEEP_SECONDS = 1.0
_MOST_BEHIND_MS = 0.5
_TIMERS_LATE_MS = 2.5
_CLOCK_OFF_MS = 2000


class _Won(NamedTuple):
    """The messages of a chunk's slots that were won, why that may be lost yet, and when the claim was asked for."""

    messages: list[Message]
    doubt: str
    at: float


class Ticker:
    """Decides slots as they fall due.

    Args:
        store: the coordinating Redis.
        planner: the jobs of this replica.
        dispatcher: takes what was won.
        clock: Redis's time, shared with the sweeper.
        replica: this process; its id is random and made after a fork.
        emit: takes events.
        build: makes jobs of what is stored in Redis; None to leave that alone.
        spread: seconds; each claim is delayed by a random part of it, so that the wins go round.
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
        build: Build | None = None,
        spread: float = 0.0,
    ) -> None:
        self.store = store
        self.planner = planner
        self.dispatcher = dispatcher
        self.clock = clock
        self.replica = replica
        self.emit = emit
        self.spread = spread
        self.registrar = Registrar(store, planner, clock, replica, emit, build=build, guarded=dispatcher.guarded)
        self.ticked_at: float | None = None
        """When the last pass ended well, by the clock's monotonic time; None before the first."""
        self.turned_at: float | None = None
        """When the loop last turned, or went on with a long pass, whether Redis answers or not; None before."""
        self._seconds_a_slot = _CHUNK_SECONDS / _FIRST_CHUNK
        self._is_measured = False
        self._wake = asyncio.Event()

    def add(self, job: Job) -> None:
        """Take a job in, before or after the start; it is registered by the next pass."""
        self.registrar.add(job)
        self._wake.set()

    def remove(self, name: str) -> None:
        """Forget a job: it is not offered any more."""
        self.registrar.remove(name)

    async def tick(self, stopping: asyncio.Event | None = None) -> Counter[str]:
        """Make one pass.

        Args:
            stopping: once set, the chunk in hand is finished and the rest stays due.

        Returns:
            How many slots were offered, and how they came out: won, taken, held, skipped, early, queued, sent, refused.

        Raises:
            StoreUnavailable: what is due stays due.
        """
        counts: Counter[str] = Counter()
        await self.registrar.register()
        plan = self.planner.due(self.clock.now_ms())
        for trouble in plan.troubles:
            self.emit(JobTroubled(trouble.job.name, trouble.error))
        waiting = deque(plan.dues)
        sending: deque[asyncio.Task[Counter[str]]] = deque()
        turn = asyncio.Lock()
        try:
            await self.registrar.miss([due.gap for due in plan.dues if due.gap])
            while waiting and not (stopping and stopping.is_set()):
                if len(sending) > 1:
                    counts += await sending.popleft()
                won = await self._claim(self._next_chunk(waiting), counts)
                if won is None:
                    await self._recover_from_data_loss(waiting)
                    break
                # This chunk goes out while the one before is confirmed and the next is claimed: they share their waits.
                sending.append(asyncio.create_task(self._send(won, turn)))
                if not self._is_measured:
                    await asyncio.wait(sending)
        except asyncio.CancelledError:
            for each in sending:
                each.cancel()
            raise
        finally:
            for due in waiting:
                self.planner.put_back(due)
            counts += await _sum_of(sending)
        await self.registrar.refresh()
        self.ticked_at = self.clock.monotonic()
        return counts

    async def run(self, stopping: asyncio.Event) -> None:
        """Tick until `stopping` is set. No outage of Redis and no error in a job ends it."""
        pause = 0.0
        while not stopping.is_set():
            self.turned_at = self.clock.monotonic()
            try:
                await self.tick(stopping)
            except StoreUnavailable as error:
                self.registrar.note_loss(error)
                pause = min(max(pause * 2, 0.1), 2.0)
                await _sleep(pause * random.uniform(0.5, 1.0), stopping)
                continue
            except Exception as error:  # noqa: BLE001 - the loop must outlive what nobody foresaw; the fact is reported as critical
                self.emit(PassFailed("tick", f"{type(error).__name__}: {error}"))
                await _sleep(1.0, stopping)
                continue
            pause = 0.0
            await self._sleep_until_due(stopping)

    # ---- the passage of one chunk

    def _next_chunk(self, waiting: deque[Due]) -> list[Due]:
        """Take as many as can surely be enqueued in a second, by how long the last ones took; one job at least."""
        room = max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / self._seconds_a_slot)))
        chunk = [waiting.popleft()]
        size = len(chunk[0].offers)
        while waiting and size + len(waiting[0].offers) <= room:
            chunk.append(waiting.popleft())
            size += len(chunk[-1].offers)
        return chunk

    async def _claim(self, chunk: list[Due], counts: Counter[str]) -> _Won | None:
        """Claim a chunk; None where Redis lost its data."""
        offers = [offer for due in chunk for offer in due.offers]
        self.turned_at = sent = self.clock.monotonic()
        try:
            command = self.store.verbs.claim(offers, replica=self.replica.id, epoch=self.registrar.epoch)
            claims, doubt = await self.store.run_acknowledged(command)
        except BaseException:
            for due in chunk:
                self.planner.put_back(due)
            raise
        self.registrar.observe(sent, claims.now)
        if not claims.is_same_epoch:
            for due in chunk:
                self.planner.put_back(due)
            return None
        words = Counter(verdict.word for verdict in claims.verdicts)
        self._settle(chunk, claims.verdicts, words.keys())
        counts["offered"] += len(offers)
        for word, times in words.items():
            counts[word.value] += times
        return _Won(self._take(offers, claims), doubt, sent)

    async def _send(self, won: _Won, turn: asyncio.Lock) -> Counter[str]:
        """Enqueue what was won when it is its turn, and confirm it."""
        async with turn:
            answers = await self._enqueue(won)
        return await self.dispatcher.confirm(won.messages, answers)

    async def _enqueue(self, won: _Won) -> Sequence[Delivery]:
        """Enqueue what was won, and learn how long that takes."""
        messages, doubt, claimed_at = won
        if messages and doubt:
            return await self.dispatcher.enqueue(messages, doubt)
        if not messages:
            # Losing says nothing of the queue's speed, but a burst that others win shall not take a hundred trips.
            if not self._is_measured:
                self._seconds_a_slot = max(self._seconds_a_slot / 2, _CHUNK_SECONDS / _UNTRIED_CHUNK)
            return []
        began = self.clock.monotonic()
        left = ENQUEUE_SECONDS - (began - claimed_at)
        answers = await self.dispatcher.enqueue(messages, within=left)
        if left > 0:
            took = (self.clock.monotonic() - began) / len(messages)
            self._is_measured = True
            self._seconds_a_slot = max(1e-6, took if took > self._seconds_a_slot else (took + self._seconds_a_slot) / 2)
        return answers

    def _settle(self, chunk: list[Due], verdicts: Sequence[Verdict], found: AbstractSet[Word]) -> None:
        if found.isdisjoint({Word.STALE, Word.EARLY}):
            for due in chunk:
                self.planner.settle(due)
            return
        left = iter(verdicts)
        for due in chunk:
            words = {verdict.word for verdict in islice(left, len(due.offers))}
            if Word.STALE in words:  # a stored job that was put or removed since
                self.registrar.stored.hurry()
            if words.isdisjoint({Word.STALE, Word.EARLY}):
                self.planner.settle(due)
            else:
                self.planner.put_back(due)

    def _take(self, offers: list[Offer], claims: Claims) -> list[Message]:
        """Report what became of offers; the messages of what was won."""
        won = []
        is_win_heard, is_loss_heard = is_heard(self.emit, SlotClaimed), is_heard(self.emit, SlotTaken)
        for (job, slot), (word, detail) in zip(offers, claims.verdicts, strict=True):
            if word is Word.WON:
                fire = utc_ms(slot.fire_time)
                if is_win_heard:
                    self.emit(SlotClaimed(slot.key, job.name, self.replica.id, claims.now - fire))
                slip = Slip(slot.key, 0, fire, utc_ms(slot.start), job.task_name, job.version, job.terms_text)
                won.append(message_for(job, slip))
            elif word is Word.TAKEN:
                if is_loss_heard:
                    self.emit(SlotTaken(slot.key, job.name, self.replica.id))
            elif word is Word.SKIPPED:
                self.emit(SlotSkipped(slot.key, job.name, detail))
            elif word is Word.HELD:
                self.emit(SlotHeld(slot.key, job.name, detail))
            elif word is Word.BROKEN:
                self.emit(SlotBroken(slot.key, job.name, detail))
        return won

    async def _recover_from_data_loss(self, waiting: deque[Due]) -> None:
        """Redis came back empty, nothing was claimed: tell it what is known, and offer all of it again."""
        while waiting:
            self.planner.put_back(waiting.popleft())
        await self.registrar.register(is_forced=True)

    async def _sleep_until_due(self, stopping: asyncio.Event) -> None:
        if self.registrar.has_new:
            return
        self._wake.clear()
        next_at = self.planner.next_at()
        # A claim before its time by Redis's clock is refused and costs a round trip; so aim a little behind it.
        at = None if next_at is None else next_at + min(self.clock.uncertain_ms, _MOST_BEHIND_MS)
        seconds = min(_LONGEST_SLEEP_SECONDS, self.registrar.stored.due_in)
        if at is not None:
            ahead = at - self.clock.exact_ms()
            if ahead < _LONGEST_SLEEP_SECONDS * 1000:
                at += random.uniform(0, self.spread) * 1000
            seconds = min(seconds, (at - self.clock.exact_ms() - _TIMERS_LATE_MS) / 1000)
        if seconds > 0:
            await _sleep(seconds, stopping, self._wake)
        # The event loop's timers come up to some milliseconds late: the last stretch is yielded away instead.
        while at is not None and 0 < at - self.clock.exact_ms() <= _TIMERS_LATE_MS:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0)


async def _sleep(seconds: float, *until: asyncio.Event) -> None:
    """Sleep, or less: until one of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in until]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _sum_of(counting: Iterable[asyncio.Task[Counter[str]]]) -> Counter[str]:
    """Wait for all of them, also where one fails."""
    counts: Counter[str] = Counter()
    found = await asyncio.gather(*counting, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
        counts += each
    return counts
