"""What a replica tells Redis about itself and its jobs, and what it makes good after an outage or a loss of data.

A failover may be over before a call fails: so each new connection asks whether the server and its history of writes are
still the same. Where the server does not tell, every new connection counts as another server.

`since` and `decided` live in Redis; each live replica remembers them too, so that a Redis that comes back empty learns
them again, and neither old slots are run at once nor decided ones forgotten.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta
from itertools import islice

from slotqueue.answers import Gap, Known
from slotqueue.clock import RedisClock
from slotqueue.errors import StoreUnavailable
from slotqueue.events import (
    ClockOff,
    ClockStepped,
    DataLost,
    Emit,
    JobTroubled,
    ReplicaStarted,
    ServerChanged,
    SlotsMissed,
    StoreBack,
    StoreLost,
)
from slotqueue.jobs import Job
from slotqueue.planner import Planner
from slotqueue.process import about_process
from slotqueue.protocols import Process, ReplicaStore
from slotqueue.slots import from_ms
from slotqueue.stored_jobs import Build, StoredJobs

_CHUNK = 1000
_MOST_COUNTED = 1_000_000
_MILLISECOND = timedelta(milliseconds=1)
_EVERY_SECONDS = 300.0
_SIGN_OF_LIFE_SECONDS = 10.0
_CLOCK_OFF_MS = 2000
_REPORT_EVERY_SECONDS = 60.0


class Registrar:
    """Keeps Redis's registry and this replica's plan of one mind.

    Args:
        store: the coordinating Redis.
        planner: gets the jobs once they are registered.
        clock: Redis's time.
        replica: this process.
        emit: takes events.
        build: makes jobs of what is stored in Redis; None to leave that alone.
        guarded: tasks of which this replica knows that guarded workers run them; kept by whoever sends messages.
    """

    def __init__(
        self,
        store: ReplicaStore,
        planner: Planner,
        clock: RedisClock,
        replica: Process,
        emit: Emit,
        *,
        build: Build | None,
        guarded: AbstractSet[str] = frozenset(),
    ) -> None:
        self.store = store
        self.planner = planner
        self.clock = clock
        self.replica = replica
        self.emit = emit
        self.guarded = guarded
        self.epoch = ""
        """Names the data of this Redis; another one means that it lost them."""
        self._planned_epoch = ""
        self.stored = StoredJobs(store, build, clock, emit, plan=self._plan, drop=self._drop)
        self._new: dict[str, Job] = {}
        self._registered_at = float("-inf")
        self._seen_at = float("-inf")
        self._up_since = 0
        self._lost_at: float | None = None
        self._problem = ""
        self._reported_at = float("-inf")
        self._is_started = False
        self._connects = -1
        self._history: str | None = None
        self._owes_rewind = False

    @property
    def has_new(self) -> bool:
        """Whether jobs wait to be registered."""
        return bool(self._new)

    def add(self, job: Job) -> None:
        """Take in a job of the code; the next `register` makes it known and plans it."""
        self.stored.yield_to_code(job.name)
        self._plan(job)

    def remove(self, name: str) -> None:
        """Forget a job of the code."""
        self._drop(name)
        self.stored.take_from_code(name)

    async def register(self, *, is_forced: bool = False) -> None:
        """Make this replica and its jobs known where that is due, and see whether Redis still knows what it knew.

        Raises:
            StoreUnavailable: ask again.
        """
        is_another = await self._is_another_server()
        if is_another or self._lost_at is not None:
            self._owes_rewind = True
        await self._renew(in_full=is_forced or self._owes_rewind)
        is_data_lost = self._planned_epoch not in ("", self.epoch)
        if is_data_lost:
            await self.stored.restore()
        if self._owes_rewind:
            self.stored.distrust()
        if not self._is_started or self._owes_rewind or is_data_lost:
            await self.refresh()
        while self._new:
            await self._register_new()
        if is_data_lost:
            await self._register(self.planner.known())
            if self.guarded:  # before any slot is offered again: one that is sent unguarded is never followed
                await self.store.run(self.store.verbs.vouch(sorted(self.guarded)))
            self.emit(DataLost(self.epoch))
        self._planned_epoch = self.epoch
        if self._owes_rewind or is_data_lost:
            await self.miss(self.planner.rewind(self.clock.now_ms(), is_data_lost=is_data_lost))
            self._owes_rewind = False
        if not self._is_started:
            self._is_started = True
            self.emit(ReplicaStarted(self.replica.id, len(self.planner)))

    async def refresh(self) -> None:
        """Learn which jobs stored in Redis were put or removed; asks each 1.5 s at most.

        Raises:
            StoreUnavailable: ask again.
        """
        if not await self.stored.refresh(self.epoch):
            self._registered_at = float("-inf")  # other data: the next `register` finds out

    async def miss(self, gaps: Sequence[Gap]) -> None:
        """Record gaps that nobody decided.

        Raises:
            StoreUnavailable: the gaps are found again by the next pass.
        """
        for at in range(0, len(gaps), _CHUNK):
            some = gaps[at : at + _CHUNK]
            while some:
                some = await self._miss(await asyncio.to_thread(_counted, some))

    async def _miss(self, gaps: Sequence[Gap]) -> list[Gap]:
        """Record gaps; returns what is left of those of which another replica has decided some."""
        starts = await self.store.run(self.store.verbs.miss(gaps, replica=self.replica.id, epoch=self.epoch))
        left = []
        for gap, start in zip(gaps, starts, strict=False):
            if start > gap.after:
                left.append(replace(gap, after=start))
            elif start:
                self.emit(SlotsMissed(gap.job.name, _iso(gap.after), _iso(gap.until), gap.why, gap.slots))
        return left

    def observe(self, sent: float, now: float, *, precision_ms: float = 1.0) -> None:
        """Take in Redis's time from an answer: see `RedisClock.observe`."""
        step = self.clock.observe(sent, now, precision_ms=precision_ms)
        if step:
            self.emit(ClockStepped(step))

    def note_loss(self, error: StoreUnavailable) -> None:
        """Note that Redis does not answer: reported at once, again when the reason changes, and every minute."""
        self.clock.lose_contact()
        now, problem = self.clock.monotonic(), str(error)
        if self._lost_at is None:
            self._lost_at = now
        elif problem == self._problem and now - self._reported_at < _REPORT_EVERY_SECONDS:
            return
        self._problem, self._reported_at = problem, now
        self.emit(StoreLost(problem.rstrip(".")))

    async def _is_another_server(self) -> bool:
        """Whether a connection was made to a server that may lack what another one has decided.

        Raises:
            StoreUnavailable: ask again.
        """
        connects = self.store.connects
        if connects == self._connects and self._lost_at is None:
            return False
        history, before = await self.store.history(), self._history
        self._connects, self._history = connects, history
        if before is None or (history and history == before):
            return False
        if history and before:
            self.emit(ServerChanged())
        return True

    async def _renew(self, *, in_full: bool) -> None:
        """Make known again what is known, every few minutes; a sign of life comes more often."""
        now = self.clock.monotonic()
        if in_full or now - self._registered_at > _EVERY_SECONDS:
            await self._register(self.planner.known(in_full=in_full))
            self._note_return()
        elif now - self._seen_at > _SIGN_OF_LIFE_SECONDS:
            await self._register_chunk([], is_last=True)

    def _note_return(self) -> None:
        if self._lost_at is not None:
            self.emit(StoreBack(self.clock.monotonic() - self._lost_at))
            self._lost_at = None

    def _plan(self, job: Job) -> None:
        self._new[job.name] = job
        self.planner.expect(job)

    def _drop(self, name: str) -> None:
        self._new.pop(name, None)
        self.planner.remove(name)

    async def _register_new(self) -> None:
        """Register jobs that were added, and plan them from when they are known."""
        jobs = list(islice(self._new.values(), _CHUNK))
        is_last = len(jobs) == len(self._new)
        known_here = [Known.of(job, job.since) for job in jobs]
        answers = await self._register_chunk(known_here, is_last=is_last)
        for job, known in zip(jobs, answers, strict=True):
            if self._new.get(job.name) is not job:  # removed or replaced meanwhile
                continue
            del self._new[job.name]
            trouble = self.planner.add(job, since=max(known.since, job.since), decided=known.decided)
            if trouble:
                self.emit(JobTroubled(job.name, trouble.error))

    async def _register(self, jobs: Iterable[Known]) -> None:
        known = list(jobs)
        for at in range(0, max(1, len(known)), _CHUNK):
            await self._register_chunk(known[at : at + _CHUNK], is_last=at + _CHUNK >= len(known))
        self._registered_at = self.clock.monotonic()
        if abs(offset := self.clock.host_offset_ms()) > _CLOCK_OFF_MS:
            self.emit(ClockOff(offset))

    async def _register_chunk(self, jobs: list[Known], *, is_last: bool) -> list[Known]:
        sent = self.clock.monotonic()
        me = Process(self.replica.id, self._about()) if is_last else self.replica
        command = self.store.verbs.register(me, jobs, epoch=secrets.token_hex(8), is_last=is_last)
        answer = await self.store.run(command)
        self.observe(sent, answer.now)
        self.epoch = answer.epoch
        self._up_since = self._up_since or answer.now
        if is_last:
            self._seen_at = self.clock.monotonic()
        if answer.share is not None:
            self.planner.share = answer.share
        return answer.jobs

    def _about(self) -> str:
        """What the registry says of this replica: it is written by the tick, so its time is that of the last tick."""
        offset = round(self.clock.host_offset_ms()) if self.clock.is_set else 0
        since = self._up_since or self.clock.now_ms()
        return about_process(up_since=since, clock_offset_ms=offset, jobs=len(self.planner) + len(self._new))


def _counted(gaps: Sequence[Gap]) -> list[Gap]:
    return [replace(gap, slots=_slots_in(gap)) for gap in gaps]


def _slots_in(gap: Gap) -> int | None:
    """How many slots a gap holds; None where nobody can say within reason."""
    start, end = (from_ms(ms) + _MILLISECOND for ms in (gap.after, gap.until))
    try:
        number = sum(1 for _ in islice(gap.job.schedule.between(start, end), _MOST_COUNTED + 1))
    except Exception:  # noqa: BLE001 - a schedule may be anybody's code
        return None
    return number if number <= _MOST_COUNTED else None


def _iso(ms: int) -> str:
    return from_ms(ms).isoformat(timespec="seconds")
