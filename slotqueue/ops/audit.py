"""What should have run against what is on record. It needs no ticker, so it finds a scheduler that has stopped firing.

What should have run is told by the schedules that were in force at the time, which the registry remembers, and by the
record itself: a slot that somebody claimed counts, whoever else forgot it. Nothing is guessed: a range from which
records may have expired is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from slotqueue.errors import ConfigurationError
from slotqueue.ops.instants import check_aware
from slotqueue.ops.known import unknown_job
from slotqueue.ops.site import Site
from slotqueue.ops.status import DECIDED_WITHIN_MS
from slotqueue.ops.timetable import Timetable
from slotqueue.policy import DAY
from slotqueue.slots import SlotState, from_ms, to_ms
from slotqueue.store.asking import CHUNK
from slotqueue.store.readings import Gap
from slotqueue.store.registry import JobEntry, Registry, read_registry
from slotqueue.store.survey import Survey, Tally
from slotqueue.words import duration, instant

MOST_SLOTS = 500_000
"""More are refused: the answer would take minutes and say little."""
EXAMPLES = 5
"""So many keys are named of each job and outcome that is bad."""
_COALESCED = "coalesced"
_EDGE_MS = 30_000
_FORGOTTEN_HISTORY_MS = DAY.total_seconds() * 1000
"""The shortest history that the defaults give, for a job of which no replica has said its own."""


class Outcome(StrEnum):
    """What became of a slot that was due; each slot has exactly one."""

    DONE = "done"
    """Finished within `done_within`."""
    LATE = "done late"
    """Finished, later than `done_within`."""
    SENT = "sent"
    """Handed to the queue, and nobody reports what became of it."""
    OPEN = "open"
    """Not over yet, or due for less than a minute."""
    OVERDUE = "overdue"
    """Not over yet, and it should be done by now (`done_within`)."""
    SKIPPED = "skipped"
    """Did not run on purpose: paused, or another slot of the job was out."""
    COALESCED = "coalesced"
    """Did not run on purpose: a newer slot ran in its place."""
    EXPIRED = "expired"
    """Came too late to begin (`expires`)."""
    MISSED = "missed"
    """Recorded as missed: nobody decided it in time, or nothing took it up."""
    LOST = "lost"
    """Its worker vanished, and a repeat would be worse."""
    DEAD = "dead"
    """Given up."""
    UNDECIDED = "never decided"
    """No replica decided it, and none has recorded that it was missed; or Redis has lost what was decided."""
    NO_RECORD = "no record"
    """It was claimed, and its record is gone or damaged."""

    @property
    def is_bad(self) -> bool:
        """Whether it should have run and did not, as far as anybody can tell."""
        return self in _BAD


_BAD = frozenset(
    {
        *(Outcome.OVERDUE, Outcome.EXPIRED, Outcome.MISSED, Outcome.LOST),
        *(Outcome.DEAD, Outcome.UNDECIDED, Outcome.NO_RECORD),
    }
)
_OF_STATE = {
    SlotState.DONE: Outcome.DONE,
    SlotState.SENT: Outcome.SENT,
    SlotState.DEAD: Outcome.DEAD,
    SlotState.LOST: Outcome.LOST,
    SlotState.SKIPPED: Outcome.SKIPPED,
    SlotState.MISSED: Outcome.MISSED,
}


@dataclass(frozen=True, slots=True)
class JobAudited:
    """One job in the range.

    Args:
        job: its name.
        slots: how many were due: the sum of `outcomes`.
        outcomes: how many ended in each; those that are zero are left out.
        repeated: how many of them took more than one attempt.
        by_hand: slots on record that an operator made; they are not among `slots`.
        examples: of each bad outcome some slot keys, the oldest first.
        is_computed: False where the schedule is of a kind that only its application can compute: then only slots on
            record are counted, and what nobody decided cannot be known.
    """

    job: str
    slots: int
    outcomes: Mapping[Outcome, int]
    repeated: int
    by_hand: int
    examples: Mapping[Outcome, Sequence[str]] = field(default_factory=dict)
    is_computed: bool = True

    @property
    def is_sound(self) -> bool:
        """Whether all that should have run did, or is not over yet."""
        return not any(outcome.is_bad for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Audited:
    """The outcome of `audit`: a row for each job with slots in the range, fire times in (since, until].

    Args:
        since, until: the range, aware UTC instants.
        jobs: the rows.
        namespace: which was asked.
        is_known: False where no job is known there and no replica has ever registered, so that nothing can be told.
        never_registered: jobs of the application that no replica has ever made known, by name.
    """

    since: datetime
    until: datetime
    jobs: tuple[JobAudited, ...]
    namespace: str = ""
    is_known: bool = True
    never_registered: tuple[str, ...] = ()

    @property
    def totals(self) -> JobAudited:
        """The sums over all jobs."""
        outcomes: Counter[Outcome] = Counter()
        for each in self.jobs:
            outcomes.update(each.outcomes)
        return JobAudited(
            "",
            sum(each.slots for each in self.jobs),
            outcomes,
            sum(each.repeated for each in self.jobs),
            sum(each.by_hand for each in self.jobs),
            is_computed=all(each.is_computed for each in self.jobs),
        )

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that should have run and did not, and anything is known at all."""
        return self.is_known and not self.never_registered and all(each.is_sound for each in self.jobs)


async def audit(site: Site, *, since: datetime, until: datetime | None = None, job: str | None = None) -> Audited:
    """Hold what should have run against what is on record.

    Args:
        site: where to look; without an application the registry in Redis tells the schedules.
        since: aware instant; slots with later fire times count.
        until: aware instant, up to now; None for now.
        job: only this one.

    Raises:
        ConfigurationError: a range that is empty, that lies ahead, from which records may have expired, or that holds
            more than 500,000 slots; or a job that nobody knows.
        StoreUnavailable: ask again.
    """
    survey = Survey(site.store, site.namespace)
    registry = await read_registry(survey)
    absent = tuple(sorted((site.jobs or {}).keys() - registry.jobs.keys()))
    if job is not None:
        if job not in registry.jobs and job not in absent:
            raise unknown_job(site, registry.jobs, job)
        absent = tuple(each for each in absent if each == job)
    entries = sorted((each for each in registry.jobs.values() if job in (None, each.name)), key=lambda each: each.name)
    start, end = _range(since, until, registry.now)
    starts = [_start_of(entry, start, end, registry.now) for entry in entries]
    timetable = Timetable(registry, site.jobs)
    expected = _expected(entries, starts, timetable, start, end)
    with_gaps = await site.reader.jobs_with_gaps(start)
    gaps = await site.reader.gaps([each for each in with_gaps if each in expected])
    rows: list[JobAudited] = []
    for at in range(0, len(entries), CHUNK):
        some = entries[at : at + CHUNK]
        firsts = [first + 1 for first in starts[at : at + CHUNK]]
        listed = await survey.listed([entry.name for entry in some], firsts, end)
        tallies = await _tallies(survey, site.namespace, some, listed)
        for entry, tails, found in zip(some, listed, tallies, strict=True):
            record = _Record(dict(zip(tails, found, strict=True)), gaps.get(entry.name, []))
            rows.append(_audited(site.namespace, entry, expected[entry.name], record, registry))
    return Audited(
        from_ms(start),
        from_ms(end),
        tuple(row for row in rows if row.slots or row.by_hand),
        namespace=site.namespace,
        is_known=bool(registry.jobs or registry.fleet_seen),
        never_registered=absent,
    )


@dataclass(frozen=True, slots=True)
class _Due:
    """The slots of a job that were due by its schedules: the tail of the key -> fire time, ms."""

    fires: Mapping[str, int]
    is_computed: bool


@dataclass(frozen=True, slots=True)
class _Record:
    """What is on record of a job: by the tail of the key, and what nobody decided."""

    tallies: Mapping[str, Tally]
    gaps: Sequence[Gap]


def _range(since: datetime, until: datetime | None, now: int) -> tuple[int, int]:
    check_aware("since", since)
    check_aware("until", until)
    start, end = to_ms(since), now if until is None else to_ms(until)
    if start >= now:
        raise ConfigurationError(f"{instant(start)} lies ahead; right is an instant before now", argument="since")
    if end > now:
        raise ConfigurationError(f"{instant(end)} lies ahead; right is an instant up to now", argument="until")
    if start >= end:
        raise ConfigurationError(f"{instant(start)} is not before {instant(end)}", argument="since")
    return start, end


def _start_of(entry: JobEntry, start: int, end: int, now: int) -> int:
    """From when the job is looked at. A range from which records of it may have expired is refused.

    One that begins where records expire, such as the last 24 h with a history of 24 h, loses a minute there: meanwhile
    they expire.
    """
    history = entry.about.terms.history if entry.about else _FORGOTTEN_HISTORY_MS
    floor = round(now - history) + _EDGE_MS
    for first, last in _pieces(entry, start, end):
        if first < min(floor - 2 * _EDGE_MS, last):
            raise ConfigurationError(
                f"its records live for {duration(history)} after the end (`history`), so of what was due before "
                f"{instant(floor)} nobody can tell any more whether it ran; ask from there on, or for the other jobs "
                "by name",
                job=entry.name,
                argument="since",
            )
    return max(start, floor)


def _pieces(entry: JobEntry, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of a range in which each schedule version of a job was in force, in the order of its spans."""
    return [(max(start, span.since), end if span.until is None else min(end, span.until)) for span in entry.spans]


def _expected(
    entries: Sequence[JobEntry], starts: Sequence[int], timetable: Timetable, start: int, end: int
) -> dict[str, _Due]:
    expected: dict[str, _Due] = {}
    count = 0
    for entry, begin in zip(entries, starts, strict=True):
        due: dict[str, int] = {}
        is_computed = True
        for span, (first, last) in zip(entry.spans, _pieces(entry, begin, end), strict=True):
            if first >= last:
                continue
            if timetable.schedule(span.version) is None:
                is_computed = False
                continue
            fires = timetable.fires(span.version, start, end, MOST_SLOTS - count).within(first, last)
            due.update(zip(fires.tails, fires.times, strict=True))
        count += len(due)
        if count > MOST_SLOTS:
            raise ConfigurationError(
                f"the range holds more than {MOST_SLOTS:,} slots; ask for a shorter one, or for single jobs",
                argument="since",
            )
        expected[entry.name] = _Due(due, is_computed)
    return expected


async def _tallies(
    survey: Survey, namespace: str, entries: Sequence[JobEntry], listed: Sequence[Sequence[str]]
) -> list[list[Tally]]:
    keys = [f"{namespace}:{entry.name}:{tail}" for entry, tails in zip(entries, listed, strict=True) for tail in tails]
    found = iter(await survey.tallies(keys))
    return [list(islice(found, len(tails))) for tails in listed]


def _audited(namespace: str, entry: JobEntry, due: _Due, record: _Record, registry: Registry) -> JobAudited:
    outcomes: Counter[Outcome] = Counter()
    examples: dict[Outcome, list[str]] = {}
    repeated = 0
    fresh = registry.now - DECIDED_WITHIN_MS - (entry.about.jitter if entry.about else 0)
    on_record = [tail for tail in record.tallies if "~" not in tail]
    by_hand = len(record.tallies) - len(on_record)
    tails = [*due.fires, *(tail for tail in on_record if tail not in due.fires)]
    for tally, times in Counter(map(record.tallies.get, tails)).items():  # many slots stand in few ways
        repeated += times if tally is not None and tally.is_repeated else 0
        if tally is not None and not _outcome(tally).is_bad:
            outcomes[_outcome(tally)] += times
            continue
        for tail in (each for each in tails if record.tallies.get(each) == tally):
            outcome = _outcome(tally) if tally else _without_claim(due.fires[tail], record.gaps, fresh)
            outcomes[outcome] += 1
            if outcome.is_bad:
                examples.setdefault(outcome, []).append(tail)
    return JobAudited(
        entry.name,
        sum(outcomes.values()),
        dict(outcomes),
        repeated,
        by_hand,
        {
            outcome: tuple(f"{namespace}:{entry.name}:{tail}" for tail in sorted(examples[outcome])[:EXAMPLES])
            for outcome in (Outcome if examples else ())
            if outcome in examples
        },
        is_computed=due.is_computed,
    )


@lru_cache(maxsize=100)
def _outcome(tally: Tally) -> Outcome:
    state = tally.state
    if state is None:
        return Outcome.NO_RECORD
    if state.is_open:
        return Outcome.OVERDUE if tally.is_overdue else Outcome.OPEN
    if tally.is_late:
        return Outcome.LATE
    return Outcome.EXPIRED if tally.is_expired else _OF_STATE[state]


def _without_claim(fire: int, gaps: Sequence[Gap], fresh: int) -> Outcome:
    gap = next((gap for gap in gaps if gap.after < fire <= gap.until), None)
    if gap is not None:
        return Outcome.COALESCED if gap.why.startswith(_COALESCED) else Outcome.MISSED
    return Outcome.UNDECIDED if fire <= fresh else Outcome.OPEN
