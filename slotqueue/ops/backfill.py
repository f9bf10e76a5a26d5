"""Backfill: an operator has the past slots of a job run, oldest first.

Slots are claimed, so a backfill that was broken off goes on where it stopped: what is done or on its way is left alone.
What was skipped or missed is brought back; what is dead or lost is left to `retry`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from slotqueue.errors import ConfigurationError
from slotqueue.ops.instants import check_aware
from slotqueue.ops.operator import operator
from slotqueue.ops.plans import Plan, known_plan_of
from slotqueue.ops.site import Site
from slotqueue.policy import Terms
from slotqueue.protocols import Schedule
from slotqueue.slots import SlotState, from_ms, key_at
from slotqueue.store.orders import Answer, Orders, Wanted
from slotqueue.words import count, instant

MOST_SLOTS = 10_000
"""A longer range needs saying so."""
_BATCH = 50
_LOOK_AGAIN_SECONDS = 0.5
_OPEN = {state.value for state in SlotState if state.is_open}
_BACK = {SlotState.SKIPPED.value, SlotState.MISSED.value}
NO_RECORD = "no record"


@dataclass(frozen=True, slots=True)
class Range:
    """The slots of a job in a stretch of the past.

    Args:
        job: its name.
        start, end: the fire times lie in [start, end), aware instants.
        standing: where each slot stands, oldest first: a state, or "no record" (it may be owed from before the job was
            known, missed in a gap, or older than records are kept).
    """

    job: str
    start: datetime
    end: datetime
    standing: Mapping[str, str]

    @property
    def counts(self) -> Counter[str]:
        """How many slots stand where."""
        return Counter(self.standing.values())

    @property
    def wanted(self) -> tuple[str, ...]:
        """The keys of those that a backfill has run: without a record, skipped or missed."""
        return tuple(key for key, state in self.standing.items() if state == NO_RECORD or state in _BACK)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a backfill is.

    Args:
        total: how many slots it wants to run.
        counts: how many were decided by it, by what came of them: claimed, held, taken, broken.
        open: how many of the job's slots in the range have not ended; None where that was not asked.
        waits_for: why it waits right now; "" where it does not.
    """

    total: int
    counts: Counter[str]
    open: int | None = None
    waits_for: str = ""

    @property
    def decided(self) -> int:
        """How many slots are behind it."""
        return self.counts.total()


async def survey(site: Site, job: str, start: datetime, end: datetime, *, most: int = MOST_SLOTS) -> Range:
    """Look what a backfill would find; changes nothing.

    Args:
        site: where; an application is needed only for a schedule of its own kind.
        job: its name.
        start, end: fire times in [start, end), aware instants; `end` lies in the past.
        most: refuse more slots than these.

    Raises:
        ConfigurationError: a job that nobody knows, a schedule that nobody can tell, or a range that makes no sense:
            empty, in the future, without a fire time, or with more slots than `most`.
        StoreUnavailable: ask again.
    """
    check_aware("start", start, job=job)
    check_aware("end", end, job=job)
    plan, schedule = await _plan(site, job)
    now = from_ms(await site.reader.now())
    if end <= start:
        raise ConfigurationError(f"{instant(end)} is not after {instant(start)}", job=job, argument="to")
    if end > now:
        problem = f"{instant(end)} has not come (it is {instant(now)}): those slots fire by themselves"
        raise ConfigurationError(problem, job=job, argument="to")
    fires = list(islice(schedule.between(start, end), most + 1))
    if len(fires) > most:
        raise ConfigurationError(
            f"from {instant(start)} to {instant(end)} there are more than {most} slots, the first {most} of them up to "
            f"{instant(fires[-2])}: take a shorter range, or say that so many are meant (--most)",
            job=job,
            argument="range",
        )
    if not fires:
        raise ConfigurationError(
            f"its schedule ({plan.schedule_words}) does not fire from {instant(start)} to {instant(end)}",
            job=job,
            argument="range",
        )
    keys = [key_at(site.namespace, job, each) for each in fires]
    return Range(job, start, end, await _standing(site, keys))


async def backfill(
    site: Site,
    found: Range,
    *,
    max_open: int | None = None,
    rate: float | None = None,
    by: str | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    stopping: asyncio.Event | None = None,
) -> Progress:
    """Have the past slots of a job run, oldest first; returns once the last one is on its way.

    Args:
        site: where.
        found: from `survey`.
        max_open: wait while so many slots of the range have not ended, > 0; None for no limit. Of a job that lets no
            two slots be out it is 1.
        rate: slots a second, > 0; None for no limit.
        by: who; default: this user on this host.
        on_progress: told after each step, in this loop; must not block.
        stopping: once set, the slots in hand are finished and the rest is left.

    Raises:
        ConfigurationError: a limit out of bounds, or the job is paused.
        StoreUnavailable: some slots are on their way; survey and go on.
    """
    plan, _ = await _plan(site, found.job)
    if max_open is not None and max_open < 1:
        raise ConfigurationError(f"{max_open} is below 1", job=plan.job, argument="max_open")
    if rate is not None and not 0 < rate < float("inf"):
        raise ConfigurationError(f"{rate} is no rate above 0", job=plan.job, argument="rate")
    under_way = _Backfill(site, plan, found, max_open, rate, by or operator(), on_progress)
    return await under_way.run(stopping or asyncio.Event())


class _Backfill:
    """One backfill under way."""

    def __init__(
        self,
        site: Site,
        plan: Plan,
        found: Range,
        max_open: int | None,
        rate: float | None,
        by: str,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.site = site
        self.plan = plan
        self.found = found
        self.max_open = max_open if Terms.parse(plan.terms).may_overlap else 1
        self.rate = rate
        self.orders = Orders(site.reader.keys, by)
        self.on_progress = on_progress
        self.counts: Counter[str] = Counter()
        self.open = [key for key, state in found.standing.items() if state in _OPEN]

    async def run(self, stopping: asyncio.Event) -> Progress:
        waiting = deque(self.found.wanted)
        began, total = time.monotonic(), len(waiting)
        while waiting and not stopping.is_set():
            allowed = (
                _BATCH if self.rate is None else int((time.monotonic() - began) * self.rate) + 1 - self.counts.total()
            )
            room = min(_BATCH, allowed, await self._room())
            if room < 1:
                for_rate = self.rate is not None and allowed < 1
                self._tell(total, "the rate" if for_rate else f"{count(len(self.open), 'slot')} to end")
                seconds = 1 / self.rate if self.rate and for_rate else _LOOK_AGAIN_SECONDS
                await _pause(min(seconds, _LOOK_AGAIN_SECONDS), stopping)
                continue
            some = [waiting.popleft() for _ in range(min(room, len(waiting)))]
            busy = await self._order(some)
            waiting.extendleft(reversed(busy))
            self._tell(total, "")
            if busy:
                await _pause(_LOOK_AGAIN_SECONDS, stopping)
        return self._tell(total, "")

    async def _room(self) -> int:
        """How many more slots may be open; those that have ended are forgotten on the way."""
        if self.max_open is None:
            return _BATCH
        states = await self.site.reader.states(self.open)
        self.open = [key for key, state in zip(self.open, states, strict=True) if state in _OPEN]
        return self.max_open - len(self.open)

    async def _order(self, keys: Sequence[str]) -> list[str]:
        """Order slots; returns those for which another slot of the job was in the way."""
        back = [key for key in keys if self.found.standing[key] in _BACK]
        answers: dict[str, Answer] = {}
        if back:
            retried = await self.site.store.run(self.orders.retry(back))
            answers |= zip(back, retried, strict=True)
        new = [self._wanted(key) for key in keys if key not in answers]
        if new:
            ordered = await self.site.store.run(self.orders.order(new, "backfilled"))
            answers |= zip((each.key for each in new), ordered, strict=True)
        if any(answer.word == "paused" for answer in answers.values()):
            raise ConfigurationError("it is paused; resume it, and backfill then", job=self.plan.job)
        busy = [key for key in keys if answers[key].word == "busy"]
        self.counts.update(answers[key].word for key in keys if key not in busy)
        self.open += [key for key in keys if answers[key].word in ("claimed", "held")]
        return busy

    def _wanted(self, key: str) -> Wanted:
        return self.plan.wanted(key, self.site.parts_of(key).fire_time)

    def _tell(self, total: int, waits_for: str) -> Progress:
        progress = Progress(total, self.counts.copy(), None if self.max_open is None else len(self.open), waits_for)
        self.on_progress(progress)
        return progress


async def _pause(seconds: float, stopping: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


async def _standing(site: Site, keys: Sequence[str]) -> dict[str, str]:
    """Where slots stand; a done marker and a claim outlive a lost record."""
    found = dict(zip(keys, await site.reader.states(keys), strict=True))
    unknown = [key for key, state in found.items() if not state]
    for kept in await site.reader.slots(unknown):
        if kept.damage:
            found[kept.key] = "damaged"
        elif kept.done_by is not None:
            found[kept.key] = SlotState.DONE.value
        else:
            found[kept.key] = "claimed, its record gone" if kept.owner is not None else NO_RECORD
    return found


async def _plan(site: Site, job: str) -> tuple[Plan, Schedule]:
    plan = await known_plan_of(site, job)
    if plan.schedule is None:
        raise ConfigurationError("only its application can tell its schedule: name it as MODULE:ATTRIBUTE", job=job)
    return plan, plan.schedule
