"""What is due, what is missed, what coalesces: a heap of next fire times. Pure; it reads no clock.

A pass with nothing due looks at the top of the heap and costs nothing per idle job. Jobs that are due at one instant
share its place there, so that a burst of thousands is one step, and a job is added and removed in no more than the
logarithm of the instants. Memory advances only when the caller settles what it was given: what is put back is due
again. Downtime is never walked slot by slot.

A slot may be handed out some milliseconds ahead of its time, a burst up to 1.5 s: then it can be claimed by its
time, and the message is ready. Where slots must not overlap it is not: whether another one is out is judged in time.
Of a burst, a replica of many is handed out its share first, and the others' a moment later, should they be left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from slotqueue.answers import Gap, Known, Offer, Share
from slotqueue.jobs import Job
from slotqueue.schedules import newest_between
from slotqueue.slots import Slot, from_ms, key_at, to_ms, utc_ms

_MILLISECOND = timedelta(milliseconds=1)
_MOST_OFFERS = 100
"""Of one job in one pass; what is left is due in the next."""
_QUARANTINE_MS = 60_000
_AHEAD_A_SLOT_MS = 0.15
"""What a slot of a burst takes to be claimed and packed, about."""
_MOST_AHEAD_MS = 1500
_SHARED_FROM = 200
"""Fewer slots at once are offered by all replicas: the quickest wins."""
_OTHERS_AFTER_MS = 500
_SHORTEST_SHARED = timedelta(seconds=5)
"""Of a job that comes more often, the next slot would be due while this one waits for others."""


class Turn(NamedTuple):
    """A place in the heap: from when its slots are handed out, ms, and whether that is ahead of their time."""

    at: int
    is_ahead: bool


@dataclass(slots=True, eq=False)
class Entry:
    """Where one job stands: its next fire time, and up to where everything is decided."""

    job: Job
    since: int
    decided: int
    fire: int | None = None
    previous: int | None = None
    turn: Turn | None = None
    """Where in the heap it stands; None while its slots are out."""
    is_others: bool = False
    """Whether its slot is in another replica's share, and surely claimed by now."""


class Due(NamedTuple):
    """What is due of one job: slots to claim, oldest first, and the gap before them. Settle it or put it back.

    `at`: when the newest one is to be enqueued, jitter included, ms. `others`: the key of a slot in another replica's
    share, in place of offers; once put back, it is offered as any other.
    """

    entry: Entry
    at: int
    offers: list[Offer]
    gap: Gap | None
    following: int | None
    others: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A job whose schedule could not be computed; it is asked again in a minute."""

    job: Job
    error: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One pass: what is due, and which jobs are in trouble."""

    dues: list[Due] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)


class Planner:
    """The jobs of this replica by their next fire time. Instants are ms of Redis's time.

    Args:
        namespace: what every slot key begins with.
        ahead_ms: how long before its time a slot is handed out, a burst even earlier; 0 for never.
    """

    def __init__(self, namespace: str, *, ahead_ms: int = 0) -> None:
        self.namespace = namespace
        self.ahead_ms = ahead_ms
        self.share = Share()
        """Which slots of a burst are handed out first."""
        self._entries: dict[str, Entry] = {}
        self._expected: dict[str, Job] = {}
        self._turns: list[Turn] = []
        self._due_at: dict[Turn, dict[Entry, None]] = {}
        """For each place in the heap, who is due then: an ordered set."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def most_ahead_ms(self) -> int:
        """No slot is handed out longer than this before its time."""
        return _MOST_AHEAD_MS if self.ahead_ms else 0

    def expect(self, job: Job) -> None:
        """Know a job that is not planned yet: its open slots are this replica's business at once."""
        self._expected[job.name] = job

    def add(self, job: Job, *, since: int, decided: int) -> Trouble | None:
        """Take a job in, or replace the one of its name. It owes nothing from before `since` or up to `decided`."""
        self.remove(job.name)
        entry = Entry(job, since, max(since, decided))
        self._entries[job.name] = entry
        try:
            entry.fire = self._after(entry, entry.decided)
        except Exception as error:  # noqa: BLE001 - a schedule may be anybody's code; one job must not stop the others
            return self._quarantine(entry, entry.decided, error)
        self._push(entry)
        return None

    def remove(self, name: str) -> None:
        """Forget a job; unknown names are fine."""
        self._expected.pop(name, None)
        entry = self._entries.pop(name, None)
        if entry is not None and entry.turn is not None:
            del self._due_at[entry.turn][entry]

    def job(self, name: str) -> Job | None:
        """The job of that name."""
        entry = self._entries.get(name)
        return entry.job if entry else self._expected.get(name)

    def known(self, *, in_full: bool = True) -> Iterator[Known]:
        """What this replica knows of each job, for `register`; in full or only what changes."""
        for entry in self._entries.values():
            if in_full:
                yield Known.of(entry.job, entry.since, entry.decided)
            else:
                yield Known(entry.job.name, entry.job.schedule_version, entry.since, entry.decided)

    def next_at(self) -> int | None:
        """When the next slot is handed out, jitter included; None for never."""
        while self._turns and not self._due_at[self._turns[0]]:
            del self._due_at[heapq.heappop(self._turns)]
        return self._begin_of(self._turns[0]) if self._turns else None

    def due(self, now: int) -> Plan:
        """Take out what is due at `now`."""
        plan = Plan()
        while (at := self.next_at()) is not None and at <= now:
            turn = heapq.heappop(self._turns)
            entries = self._due_at.pop(turn)
            is_shared = turn.is_ahead and len(entries) >= _SHARED_FROM
            for entry in entries:
                entry.turn = None
                if is_shared and not self._is_mine(entry):
                    entry.is_others = True
                    self._push_at(entry, Turn(turn.at + self.ahead_ms + _OTHERS_AFTER_MS, is_ahead=False))
                    continue
                try:
                    plan.dues.append(self._due(entry, now))
                except Exception as error:  # noqa: BLE001 - as in add
                    plan.troubles.append(self._quarantine(entry, now, error))
        return plan

    def settle(self, due: Due) -> None:
        """Advance: every slot of `due` is decided."""
        entry = due.entry
        fire = utc_ms(due.offers[-1].slot.fire_time) if due.offers else entry.fire if due.others else None
        if fire is not None:
            entry.previous = fire
            entry.decided = max(entry.decided, fire)
        entry.fire = due.following
        self._push(entry)

    def put_back(self, due: Due) -> None:
        """Do not advance: the store gave no answer. The same slots are due again at once, whoever's share they are."""
        if due.others:
            due.entry.is_others = False
            self._push_at(due.entry, Turn(due.at, is_ahead=False))
        else:
            self._push(due.entry)

    def rewind(self, now: int, *, is_data_lost: bool) -> list[Gap]:
        """After an outage of Redis: be ready to offer the last slots again, so that claims it lost are made good.

        Jobs that shall complete go back by their lookback. Jobs that shall skip keep to what this replica has not
        settled; where data is lost they do not repeat what another replica may have decided: that becomes a gap.

        Returns:
            The gaps, to be recorded.
        """
        gaps = []
        # What was handed out may have been claimed, and be on its way, also ahead of its time.
        out = {turn for turn in self._turns if self._begin_of(turn) <= now} | {None}
        self._turns, self._due_at = [], {}
        for entry in self._entries.values():
            turn, entry.turn = entry.turn, None
            if entry.fire is None and turn is not None:  # its schedule fails: it is asked again in a minute
                self._push_at(entry, turn)
                continue
            if entry.job.terms.is_complete:
                self._go_back(entry, now)
            elif is_data_lost and entry.fire is not None and (entry.fire <= now or turn in out or entry.is_others):
                until = max(now, entry.fire)
                gaps.append(Gap(entry.job, entry.decided, until, "Redis lost its data, and a repeat would be worse"))
                entry.decided, entry.previous = until, None
                entry.fire = self._after(entry, until)
            self._push(entry)
        return gaps

    def _go_back(self, entry: Entry, now: int) -> None:
        start = from_ms(entry.since) + _MILLISECOND
        newest = newest_between(entry.job.schedule, start, from_ms(now) + _MILLISECOND, entry.job.policy.lookback + 1)
        if newest and (entry.fire is None or to_ms(newest[0]) < entry.fire):
            entry.fire, entry.previous = to_ms(newest[0]), None

    def _is_mine(self, entry: Entry) -> bool:
        job, fire = entry.job, entry.fire
        return fire is None or job.period < _SHORTEST_SHARED or self.share.holds(job.name, fire)

    def _begin_of(self, turn: Turn) -> int:
        """From when its slots are handed out: the more there are, the earlier."""
        if not turn.is_ahead:
            return turn.at
        return turn.at - min(int(len(self._due_at[turn]) * _AHEAD_A_SLOT_MS), _MOST_AHEAD_MS - self.ahead_ms)

    def _due(self, entry: Entry, now: int) -> Due:
        if entry.fire is None:  # it comes from quarantine
            entry.fire = self._after(entry, entry.decided)
            return Due(entry, now, [], None, entry.fire)
        at = entry.fire + entry.job.delay_of(entry.fire)
        following = self._after(entry, entry.fire)
        if following is None or following + entry.job.delay_of(following) > now:
            if entry.is_others:
                return Due(entry, at, [], None, following, self._key_of(entry.job.name, entry.fire))
            return Due(entry, at, [self._offer(entry, entry.fire, entry.previous)], None, following)
        return self._due_after_gap(entry, now)

    def _due_after_gap(self, entry: Entry, now: int) -> Due:
        """Several are undecided: the newest and `lookback` before it are worth it, with `coalesce` only the newest."""
        job, first = entry.job, entry.fire or 0
        wanted = 1 if job.policy.coalesce else job.policy.lookback + 1
        delayed = math.ceil(job.jitter_ms * _MILLISECOND / job.period)
        newest = newest_between(job.schedule, from_ms(first), from_ms(now) + _MILLISECOND, wanted + delayed)
        fires = [to_ms(each) for each in newest]
        while len(fires) > 1 and fires[-1] + job.delay_of(fires[-1]) > now:
            fires.pop()
        fires = fires[-wanted:]
        gap = None
        if fires[0] > first:
            why = "coalesced into a newer slot" if job.policy.coalesce else "older than the lookback"
            gap = Gap(job, entry.decided, fires[0] - 1, why)
        fires = fires[:_MOST_OFFERS]
        starts = [entry.previous if fires[0] == first else None, *fires]
        offers = [self._offer(entry, fire, start) for fire, start in zip(fires, starts, strict=False)]
        return Due(entry, now, offers, gap, self._after(entry, fires[-1]))

    def _offer(self, entry: Entry, fire: int, previous: int | None) -> Offer:
        fire_time = from_ms(fire)
        if previous is None:
            before = entry.job.schedule.latest_at(fire_time - _MILLISECOND)
            start = before if before is not None else fire_time - entry.job.period
        else:
            start = from_ms(previous)
        name = entry.job.name
        return Offer(entry.job, Slot(self._key_of(name, fire), name, fire_time, start))

    def _key_of(self, job: str, fire: int) -> str:
        return key_at(self.namespace, job, from_ms(fire))

    def _after(self, entry: Entry, at: int) -> int | None:
        instant = from_ms(at)
        following = entry.job.schedule.next_after(instant)
        if following is None:
            return None
        if following <= instant:
            raise ValueError(f"the schedule answered {following.isoformat()}, which is not after {instant.isoformat()}")
        return to_ms(following)

    def _push(self, entry: Entry) -> None:
        entry.is_others = False
        if entry.fire is not None:
            job = entry.job
            at = entry.fire + job.delay_of(entry.fire) if job.jitter_ms else entry.fire
            is_ahead = self.ahead_ms > 0 and job.terms.may_overlap
            self._push_at(entry, Turn(at - self.ahead_ms, is_ahead=True) if is_ahead else Turn(at, is_ahead=False))

    def _push_at(self, entry: Entry, turn: Turn) -> None:
        if self._entries.get(entry.job.name) is not entry:  # removed while its slots were out
            return
        entries = self._due_at.get(turn)
        if entries is None:
            entries = self._due_at[turn] = {}
            heapq.heappush(self._turns, turn)
        entries[entry] = None
        entry.turn = turn

    def _quarantine(self, entry: Entry, now: int, error: Exception) -> Trouble:
        entry.fire = None
        self._push_at(entry, Turn(now + _QUARANTINE_MS, is_ahead=False))
        return Trouble(entry.job, f"{type(error).__name__}: {error}")
