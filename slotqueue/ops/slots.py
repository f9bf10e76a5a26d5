"""The newest slots, as a list."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

from slotqueue.errors import ConfigurationError
from slotqueue.ops.instants import check_aware
from slotqueue.ops.known import unknown_job
from slotqueue.ops.site import Site, job_of_key
from slotqueue.slots import SlotState, from_ms, parse_key, to_ms
from slotqueue.store.reading import Reader
from slotqueue.store.readings import Gap, SlotKept
from slotqueue.words import instant

MOST_ROWS = 1000
_LOOKED_AT = 2000
"""How many slots a search by state looks at: by then it has taken long enough."""
_SPARE = 50
"""Slots whose records have expired stay in the listing for a while."""


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One slot in a list.

    Args:
        key: the slot key; "" for a gap of slots that nobody decided.
        job: the job's name.
        fire_time: aware UTC instant.
        state: None where its keys are damaged.
        replica: who won it.
        worker: who ran it last, "" for nobody yet.
        enqueues: how often it was given to the queue, or was about to be.
        attempts: attempts spent by crashes and final failures.
        late: seconds from fire time to claim, 0 for one that was claimed ahead; None where unknown.
        claimed_at, began_at, ended_at: None for "not yet".
        note: why it ended, its last error, or what is damaged.
        missed_after, missed_until: of a gap: its fire times lie in (after, until]; None for a slot.
    """

    key: str
    job: str
    fire_time: datetime
    state: SlotState | None
    replica: str
    worker: str
    enqueues: int
    attempts: int
    late: float | None
    claimed_at: datetime | None
    began_at: datetime | None
    ended_at: datetime | None
    note: str
    missed_after: datetime | None = None
    missed_until: datetime | None = None


class _Window(NamedTuple):
    """Fire times in [since, until], ms; None for no limit."""

    since: int | None
    until: int | None

    @classmethod
    def of(cls, since: datetime | None, until: datetime | None) -> Self:
        """Check it."""
        check_aware("since", since)
        check_aware("until", until)
        if since is not None and until is not None and since > until:
            raise ConfigurationError(f"{instant(since)} is later than {instant(until)}", argument="since")
        return cls(None if since is None else to_ms(since), None if until is None else to_ms(until))

    def holds(self, fire: int) -> bool:
        """Whether a fire time lies in it."""
        return (self.since is None or self.since <= fire) and (self.until is None or fire <= self.until)


@dataclass(frozen=True, slots=True)
class Recent:
    """Slots, the newest first. `is_complete` is False where older ones may fit as well and were not looked at."""

    rows: tuple[SlotRow, ...]
    is_complete: bool


async def recent(
    site: Site,
    *,
    job: str | None = None,
    state: SlotState | Collection[SlotState] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 20,
) -> Recent:
    """List the newest slots on record, and the gaps of slots that nobody decided.

    Args:
        site: where to look.
        job: only slots of this job.
        state: only slots in this state, or in one of these.
        since, until: only fire times in [since, until], aware instants; a gap counts by its newest slot.
        limit: how many at most, 1 to 1000.

    Raises:
        ConfigurationError: a limit out of bounds, no time between the two instants, or a job that nobody knows.
        StoreUnavailable: ask again.
    """
    if not 1 <= limit <= MOST_ROWS:
        raise ConfigurationError(f"{limit} is not between 1 and {MOST_ROWS}", argument="limit")
    window = _Window.of(since, until)
    reader = site.reader
    names = await _names(site, reader, job)
    states = frozenset([state] if isinstance(state, SlotState) else state or ())
    wanted = _LOOKED_AT if states else limit + _SPARE
    keys = await _candidates(reader, names, states, wanted, window)
    is_all = len(keys) < wanted
    if job is not None:
        keys = [key for key in keys if job_of_key(key) == job]
    if states:
        found = await reader.states(keys)
        keys = [key for key, word in zip(keys, found, strict=True) if word in states]
    rows = [_row(kept) for kept in await reader.slots(keys[: limit + _SPARE]) if kept.record or kept.damage]
    if not states or SlotState.MISSED in states:
        known = set(names)
        missed = [name for name in await reader.jobs_with_gaps() if name in known][:limit]
        found_gaps = await reader.gaps(missed)
        gaps = [_gap_row(name, gap) for name, some in found_gaps.items() for gap in some if window.holds(gap.until)]
        rows = sorted([*rows, *gaps], key=lambda row: (row.fire_time, row.key), reverse=True)
    return Recent(tuple(rows[:limit]), is_complete=is_all and len(rows) <= limit)


async def _names(site: Site, reader: Reader, job: str | None) -> list[str]:
    known = await reader.job_names()
    if job is None:
        return known
    if job not in known and job not in (site.jobs or {}) and not await reader.newest([job], 1):
        raise unknown_job(site, known, job)
    return [job]


async def _candidates(
    reader: Reader, names: list[str], states: frozenset[SlotState], wanted: int, window: _Window
) -> list[str]:
    """Keys that may fit, the newest first, from the shortest index that holds them all."""
    if states and all(state.is_open for state in states):
        keys = await reader.open_keys(wanted)
    elif states and states <= {SlotState.DEAD, SlotState.LOST}:
        keys = await reader.dead_keys(wanted)
    else:
        keys = await reader.newest(names, wanted, since=window.since, until=window.until)
    sound = [key for key in keys if job_of_key(key) and window.holds(to_ms(parse_key(key).fire_time))]
    return sorted(sound, key=lambda key: (parse_key(key).fire_time, key), reverse=True)


def _row(kept: SlotKept) -> SlotRow:
    parts, record = parse_key(kept.key), kept.record
    fire = to_ms(parts.fire_time)
    if record is None:
        nothing = (None, kept.owner or "", "", 0, 0, None, None, None, None, f"damaged: {kept.damage}")
        return SlotRow(kept.key, parts.job, parts.fire_time, *nothing)
    numbers = record.numbers
    return SlotRow(
        key=kept.key,
        job=parts.job,
        fire_time=parts.fire_time,
        state=record.state,
        replica=record.by,
        worker=record.worker,
        enqueues=record.enqueues,
        attempts=numbers.spent,
        late=max(0, numbers.claimed - fire) / 1000 if numbers.claimed else None,
        claimed_at=moment(numbers.claimed),
        began_at=moment(numbers.began),
        ended_at=moment(numbers.ended),
        note=": ".join(filter(None, (record.why, record.error))) or kept.damage,
    )


def _gap_row(job: str, gap: Gap) -> SlotRow:
    """A gap of slots that nobody decided, under its last instant."""
    after, until = from_ms(gap.after), from_ms(gap.until)
    nothing = ("", 0, 0, None, None, None, from_ms(gap.recorded), gap.why, after, until)
    return SlotRow("", job, until, SlotState.MISSED, gap.replica, *nothing)


def moment(ms: int | None) -> datetime | None:
    """The aware UTC instant of ms since the epoch; None for 0 and None."""
    return from_ms(ms) if ms else None
