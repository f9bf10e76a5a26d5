"""The ticker: one pass is due -> claim -> outbox, which enqueues in time and confirms; `run` is the loop around it.

Memory advances only after the store answered, so a slot that could not be offered stays due. Claims are made in
chunks, and no more of them than are enqueued within 4 s, well inside the grace after which a sweep takes a claimed slot
over.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice

from slotqueue.answers import Claims, Offer, Verdict, Word
from slotqueue.clock import RedisClock
from slotqueue.dispatch import Dispatcher, message_for
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
from slotqueue.messages import Message, NotBefore, Slip
from slotqueue.outbox import Outbox
from slotqueue.planner import Due, Planner
from slotqueue.protocols import Process, ReplicaStore
from slotqueue.registrar import Registrar
from slotqueue.slots import utc_ms
from slotqueue.stored_jobs import Build

_LONGEST_SLEEP_SECONDS = 1.5
_MOST_BEHIND_MS = 0.5
_LOOKED_AT = 1000


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
        self.outbox = Outbox(dispatcher, clock.monotonic)
        self.clock = clock
        self.replica = replica
        self.emit = emit
        self.spread = spread
        self.registrar = Registrar(store, planner, clock, replica, emit, build=build, guarded=dispatcher.guarded)
        self.ticked_at: float | None = None
        """When the last pass ended well, by the clock's monotonic time; None before the first."""
        self.turned_at: float | None = None
        """When the loop last turned, or went on with a long pass, whether Redis answers or not; None before."""
        self._wake = asyncio.Event()

    def add(self, job: Job) -> None:
        """Take a job in, before or after the start; it is registered by the next pass."""
        self.registrar.add(job)
        self._wake.set()

    def remove(self, name: str) -> None:
        """Forget a job: it is not offered any more."""
        self.registrar.remove(name)

    async def tick(self, stopping: asyncio.Event | None = None) -> Counter[str]:
        """Make one pass, and wait until what it won is enqueued and confirmed.

        Args:
            stopping: once set, the chunk in hand is finished and the rest stays due.

        Returns:
            How many slots were offered, and how they came out: won, taken, held, skipped, early, queued, sent, refused.

        Raises:
            StoreUnavailable: what is due stays due.
        """
        counts: Counter[str] = Counter()
        try:
            await self._pass(counts, stopping)
        except asyncio.CancelledError:
            self.outbox.cancel()
            raise
        finally:
            counts += await self.outbox.drain()
        return counts

    async def run(self, stopping: asyncio.Event) -> None:
        """Tick until `stopping` is set, and send what was won by then.

        No outage of Redis and no error in a job ends it.
        """
        pause = 0.0
        try:
            while not stopping.is_set():
                self.turned_at = self.clock.monotonic()
                try:
                    self.outbox.check()
                    await self._pass(Counter(), stopping)
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
            with suppress(StoreUnavailable):  # the sweep sees to slots that could not be confirmed
                await self.outbox.drain()
        except asyncio.CancelledError:
            self.outbox.cancel()
            raise

    async def _pass(self, counts: Counter[str], stopping: asyncio.Event | None) -> None:
        """Claim what is due; the outbox sends what was won."""
        await self.registrar.register()
        plan = self.planner.due(self.clock.now_ms())
        for trouble in plan.troubles:
            self.emit(JobTroubled(trouble.job.name, trouble.error))
        waiting = deque(due for due in plan.dues if not due.others)
        others = deque(due for due in plan.dues if due.others)
        try:
            await self.registrar.miss([due.gap for due in plan.dues if due.gap])
            while waiting and not (stopping and stopping.is_set()):
                room = await self.outbox.room()
                if not await self._claim(_next_chunk(waiting, room), counts):
                    await self._recover_from_data_loss(waiting)
                    break
            while others:
                await self._look_at(others, counts)
        finally:
            for due in (*waiting, *others):
                self.planner.put_back(due)
        await self.registrar.refresh()
        self.ticked_at = self.clock.monotonic()

    # ---- the passage of one chunk

    async def _claim(self, chunk: list[Due], counts: Counter[str]) -> bool:
        """Claim a chunk; False where Redis lost its data."""
        offers = [offer for due in chunk for offer in due.offers]
        self.turned_at = sent = self.clock.monotonic()
        try:
            command = self.store.verbs.claim(
                offers, replica=self.replica.id, epoch=self.registrar.epoch, ahead_ms=self.planner.most_ahead_ms
            )
            claims, doubt = await self.store.run_acknowledged(command)
        except BaseException:
            for due in chunk:
                self.planner.put_back(due)
            raise
        self.registrar.observe(sent, claims.exact_now, precision_ms=0.001)
        if not claims.is_same_epoch:
            for due in chunk:
                self.planner.put_back(due)
            return False
        words = Counter(verdict.word for verdict in claims.verdicts)
        self._settle(chunk, claims.verdicts, words.keys())
        counts["offered"] += len(offers)
        for word, times in words.items():
            counts[word.value] += times
        now = self.clock.monotonic()
        to_come = {due.at for due in chunk if due.at > claims.exact_now}
        instants = {at: NotBefore(at, self.clock.surely_at(at)) for at in to_come}  # one each: a burst stays together
        not_before = [instants.get(due.at) for due in chunk for _ in due.offers]
        won = self._take(offers, not_before, claims, now)
        for at, messages in won.items():
            self.outbox.put(messages, at, claimed_at=sent, doubt=doubt)
        if not won:
            self.outbox.pace.lose()
        return True

    async def _look_at(self, others: deque[Due], counts: Counter[str]) -> None:
        """Settle some slots of others' shares, where all of them are claimed; else offer them in the next pass."""
        chunk = list(islice(others, _LOOKED_AT))
        taken = await self.store.run(self.store.verbs.taken([due.others for due in chunk]))
        for due in chunk:
            others.popleft()
            if taken < len(chunk):
                self.planner.put_back(due)
            else:
                self.planner.settle(due)
        if taken < len(chunk):
            return
        counts["offered"] += taken
        counts[Word.TAKEN.value] += taken
        if is_heard(self.emit, SlotTaken):
            for due in chunk:
                self.emit(SlotTaken(due.others, due.entry.job.name, self.replica.id))

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

    def _take(
        self, offers: list[Offer], not_before: list[NotBefore | None], claims: Claims, now: float
    ) -> dict[float, list[Message]]:
        """Report what became of offers; the messages of what was won, by when their enqueuers are to get them."""
        won: dict[float, list[Message]] = {}
        is_win_heard, is_loss_heard = is_heard(self.emit, SlotClaimed), is_heard(self.emit, SlotTaken)
        for (job, slot), instant, (word, detail) in zip(offers, not_before, claims.verdicts, strict=True):
            if word is Word.WON:
                fire = utc_ms(slot.fire_time)
                if is_win_heard:
                    self.emit(SlotClaimed(slot.key, job.name, self.replica.id, claims.now - fire))
                slip = Slip(slot.key, 0, fire, utc_ms(slot.start), job.task_name, job.version, job.terms_text)
                ahead = self.outbox.dispatcher.ahead_seconds(job.enqueuer) if instant else 0.0
                at = max(now, instant.monotonic - ahead) if instant else now
                message = message_for(job, slip, not_before=instant if ahead else None)
                won.setdefault(at, []).append(message)
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
                ahead += random.uniform(0, self.spread) * 1000
            seconds = min(seconds, ahead / 1000)
        if seconds > 0:
            await _sleep(seconds, stopping, self._wake)


def _next_chunk(waiting: deque[Due], room: int) -> list[Due]:
    """Take as many jobs as have room with all of their slots; one at least."""
    chunk = [waiting.popleft()]
    size = len(chunk[0].offers)
    while waiting and size + len(waiting[0].offers) <= room:
        chunk.append(waiting.popleft())
        size += len(chunk[-1].offers)
    return chunk


async def _sleep(seconds: float, *until: asyncio.Event) -> None:
    """Sleep, or less: until one of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in until]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
