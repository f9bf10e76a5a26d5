"""Schedules: plain values that yield fire times, aware UTC instants on whole seconds.

The fire times between two instants are a pure function of the schedule, half-open: `fires(a, c)` is `fires(a, b)` and
`fires(b, c)` for every b, inside a gap or a fold too, and whatever the zone of the host. Long gaps are never walked.

`Cron` and clock changes: a schedule is WILDCARD if its minute or its hour field begins with `*`, otherwise FIXED. FIXED
times inside a gap fire at the first minute after it (several collapse into one), WILDCARD ones vanish. In a fold FIXED
times fire on the first pass, WILDCARD ones on both. cronsim is only asked which wall times match (`wall_times`); the
rule is applied here, because cronsim's own reading differs: it answers instants that are not later inside a fold, loses
wildcard hours or never returns where clocks shift by half an hour (Australia/Lord_Howe, Asia/Colombo 2006), and takes
every schedule with seconds for WILDCARD.
Debian itself takes a change of three hours or more for a correction and fires nothing for it; the rule above has no
such limit: a daily job fires for Apia's skipped 2011-12-30 at the first minute of the 31st.

Source: Debian's cron(8), as read by cronsim 2.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Protocol
from zoneinfo import ZoneInfo

from slotqueue.cron_fields import first_fire, load_zone, normalise
from slotqueue.errors import ConfigurationError, InvalidSchedule
from slotqueue.wall_times import WallTimes, in_english, wall_times_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_PERIOD = timedelta(days=3660)
# One day inside the range of `datetime`, so that every zone can say these instants in its own wall time.
EARLIEST, LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
_MICROSECOND, _SECOND, _MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
_REMEMBERED = 4096
_FLOOR, _CEILING = EARLIEST - _MICROSECOND, LATEST + _MICROSECOND


class _Schedule(Protocol):
    def latest_at(self, t: datetime, /) -> datetime | None: ...


def newest_between(schedule: _Schedule, start: datetime, end: datetime, count: int) -> list[datetime]:
    """Return the newest `count` fire times of any schedule in [start, end), oldest first.

    Uses the schedule's `last_between` where it has one, else steps back with `latest_at`.

    Args:
        schedule: `Cron`, `Every` or any object with `latest_at`.
        start, end: aware instants.
        count: how many at most; below 1 gives none.

    Raises:
        ConfigurationError: a naive datetime, or a `latest_at` that answers later than it was asked.
    """
    last_between = getattr(schedule, "last_between", None)
    if last_between is not None:
        answer: list[datetime] = last_between(start, end, count)
        return answer
    first, at = _utc(start), _utc(end) - _MICROSECOND
    times: list[datetime] = []
    while len(times) < count and at >= first:
        found = schedule.latest_at(at)
        if found is None or _utc(found) < first:
            break
        if _utc(found) > at:
            raise ConfigurationError(f"{schedule!r}: latest_at({at}) gave {found}; right is that or an earlier instant")
        times.append(_utc(found))
        at = times[-1] - _MICROSECOND
    return times[::-1]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Cron:
    """Fire where a cron expression matches the wall clock of a time zone.

    Ranges of weekdays may wrap (`sat-sun`, `5-7`, `fri-mon`). `L`, `LW`, `5L` and `1#2` are cronsim's. A step needs `*`
    or a range: `1/2` is refused, because it is 1,3,5... to some crons and only 1 to others; write `1-31/2`.

    Args:
        expression: five fields, or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`.
        tz: IANA name of the zone.
        seconds: whether a sixth field, the first, gives the seconds.
        both_days: whether a date must match day-of-month and day-of-week, where both are restricted. Cron itself is
            content with either; Celery's `crontab` wants both.

    Raises:
        InvalidSchedule: an expression that is no cron expression or names no date, or an unknown zone.
    """

    expression: str
    tz: str
    seconds: bool
    both_days: bool
    _zone: ZoneInfo = field(compare=False)
    _walls: WallTimes = field(compare=False)
    _last_year: int | None = field(compare=False)
    """Nothing fires after this year, as a search found out; so that searches from ever further back end early."""

    def __init__(
        self,
        expression: str,
        tz: str = "UTC",
        seconds: bool = False,  # noqa: FBT001, FBT002
        *,
        both_days: bool = False,
    ) -> None:
        for name, flag in (("seconds", seconds), ("both_days", both_days)):
            if not isinstance(flag, bool):
                raise InvalidSchedule(f"{flag!r} is no bool; right is True or False", argument=name)
        text = normalise(expression, seconds=seconds)
        for name, value in (
            ("expression", text),
            ("tz", tz),
            ("seconds", seconds),
            ("both_days", both_days),
            ("_zone", load_zone(tz)),
            ("_walls", wall_times_of(text, both_days=both_days)),
            ("_last_year", None),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        flags = "".join(f", {name}=True" for name in ("seconds", "both_days") if getattr(self, name))
        return f"Cron({self.expression!r}, tz={self.tz!r}{flags})"

    def __str__(self) -> str:
        """Return the text that identifies this schedule."""
        return f"cron {self.expression} {self.tz}{' both days' if self.both_days else ''}"

    @property
    def words(self) -> str:
        """Say when it fires, in English: "At 03:00 every day"."""
        return in_english(self.expression)

    def __reduce__(self) -> tuple[partial[Cron], tuple[str, str, bool]]:
        return partial(Cron, both_days=self.both_days), (self.expression, self.tz, self.seconds)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Iterate the fire times in [start, end), aware instants, oldest first."""
        return self._between(_utc(start), _utc(end))

    def next_after(self, t: datetime) -> datetime | None:
        """Return the first fire time strictly later than `t`, an aware instant; None if `datetime` cannot hold it."""
        return _next_after(self, _utc(t).replace(microsecond=0))

    def latest_at(self, t: datetime) -> datetime | None:
        """Return the newest fire time at or before `t`, an aware instant; None if `datetime` cannot hold it."""
        return _latest_at(self, _utc(t).replace(microsecond=0))

    def last_between(self, start: datetime, end: datetime, count: int) -> list[datetime]:
        """Return the newest `count` fire times in [start, end), aware instants, oldest first."""
        floor, at = _utc(start) - _MICROSECOND, _utc(end) - _MICROSECOND
        step = _MINUTE
        times: list[datetime] = []
        while len(times) < count and (found := self._newest(floor, at, step)) is not None:
            times.append(found)
            step = max(at - found, _SECOND)
            at = found - _MICROSECOND
        return times[::-1]

    def _between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        at = self._next(start - _MICROSECOND)
        while at is not None and at < end:
            yield at
            at = self._next(at)

    def _newest(self, floor: datetime, at: datetime, step: timedelta) -> datetime | None:
        """Return the newest fire time in (floor, at], by forward searches from ever further back, then by halving."""
        low = nothing_after = at
        while True:
            low = max(low - step, floor) if low - floor > step else floor
            found = self._next(low)
            if found is not None and found <= at:
                break
            if low <= floor:
                return None
            nothing_after = low
            step *= 4
        while (following := self._next(found)) is not None and following <= at:
            found = following
            candidate = self._next(found + (nothing_after - found) / 2)
            if candidate is not None and candidate <= at:
                found = candidate
            else:
                nothing_after = found + (nothing_after - found) / 2
        return found

    def _next(self, instant: datetime) -> datetime | None:
        try:
            found = first_fire(
                instant, self._zone, self._walls.after, is_fixed=self._walls.is_fixed, last_year=self._last_year
            )
        except OverflowError:
            return None
        if found is None and (self._last_year is None or instant.year < self._last_year):
            object.__setattr__(self, "_last_year", instant.year + 1)
        return found if found is not None and found <= LATEST else None


# Jobs often share a schedule, and are asked for at one instant: a start or a burst asks the same thousands of times. Of
# a second all instants have one answer, since fire times are whole seconds.
@lru_cache(maxsize=_REMEMBERED)
def _next_after(cron: Cron, instant: datetime) -> datetime | None:
    return cron._next(instant)  # noqa: SLF001 - of its own module


@lru_cache(maxsize=_REMEMBERED)
def _latest_at(cron: Cron, instant: datetime) -> datetime | None:
    return cron._newest(_FLOOR, instant, _MINUTE)  # noqa: SLF001 - as above


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Every:
    """Fire at each multiple of a period since the Unix epoch, plus an offset; restarts and zones change nothing.

    Args:
        period: `timedelta` or seconds; or the sum of `seconds`, `minutes`, `hours` and `days`. Whole seconds, 1 s to
            3660 days.
        offset: `timedelta` or seconds by which all fire times are later. Whole seconds, 0 <= offset < period.

    Raises:
        InvalidSchedule: a period or an offset outside of its domain.
    """

    period: timedelta
    offset: timedelta

    def __init__(
        self,
        period: timedelta | float | None = None,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        offset: timedelta | float = 0,
    ) -> None:
        parts = {"seconds": seconds, "minutes": minutes, "hours": hours, "days": days}
        total = sum((_duration(value, unit, unit) for unit, value in parts.items()), timedelta())
        if period is not None:
            if total:
                raise InvalidSchedule(
                    "said twice; right is either period or seconds, minutes, hours, days", argument="period"
                )
            total = _duration(period, "period")
        total = _whole_seconds(total, "period")
        if not _SECOND <= total <= LONGEST_PERIOD:
            raise InvalidSchedule(
                f"{total} is out of range; right is 1 s to {LONGEST_PERIOD.days} days", argument="period"
            )
        shift = _whole_seconds(_duration(offset, "offset"), "offset")
        if shift >= total:
            raise InvalidSchedule(f"{shift} is not below the period; right is 0 <= offset < {total}", argument="offset")
        object.__setattr__(self, "period", total)
        object.__setattr__(self, "offset", shift)

    def __repr__(self) -> str:
        period, offset = self.period // _SECOND, self.offset // _SECOND
        unit, size = next((unit, size) for unit, size in _UNITS.items() if period % size == 0)
        return f"Every({unit}={period // size}{f', offset={offset}' if offset else ''})"

    def __str__(self) -> str:
        """Return the text that identifies this schedule."""
        offset = self.offset // _SECOND
        return f"every {self.period // _SECOND}s{f' offset {offset}s' if offset else ''}"

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Iterate the fire times in [start, end), aware instants, oldest first."""
        return self._between(self._index_from(_utc(start)), self._index_from(_utc(end)))

    def next_after(self, t: datetime) -> datetime | None:
        """Return the first fire time strictly later than `t`, an aware instant; None if `datetime` cannot hold it."""
        return self._at((_utc(t) - EPOCH - self.offset) // self.period + 1)

    def latest_at(self, t: datetime) -> datetime | None:
        """Return the newest fire time at or before `t`, an aware instant; None if `datetime` cannot hold it."""
        return self._at((_utc(t) - EPOCH - self.offset) // self.period)

    def last_between(self, start: datetime, end: datetime, count: int) -> list[datetime]:
        """Return the newest `count` fire times in [start, end), aware instants, oldest first."""
        stop = self._index_from(_utc(end))
        return list(self._between(max(self._index_from(_utc(start)), stop - max(count, 0)), stop))

    def _index_from(self, t: datetime) -> int:
        return -((EPOCH + self.offset - t) // self.period)

    def _between(self, first: int, stop: int) -> Iterator[datetime]:
        for index in range(first, stop):
            at = self._at(index)
            if at is not None:
                yield at

    def _at(self, index: int) -> datetime | None:
        since = index * self.period + self.offset
        return EPOCH + since if EARLIEST - EPOCH <= since <= LATEST - EPOCH else None


_UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def _duration(value: timedelta | float, argument: str, unit: str = "seconds") -> timedelta:
    if not isinstance(value, timedelta):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidSchedule(f"{value!r} is no duration; right is a timedelta or a number", argument=argument)
        try:
            value = timedelta(**{unit: value})
        except (OverflowError, ValueError) as error:
            problem = f"not a duration that fits; right is at most {LONGEST_PERIOD.days} days"
            raise InvalidSchedule(problem, argument=argument) from error
    if value < timedelta():
        raise InvalidSchedule(f"{value!r} is negative; right is a positive duration", argument=argument)
    return value


def _whole_seconds(value: timedelta, argument: str) -> timedelta:
    if value.microseconds:
        raise InvalidSchedule(f"{value} has a part of a second; right are whole seconds", argument=argument)
    return value


def _utc(t: datetime) -> datetime:
    """Return an aware datetime in UTC, brought to within a microsecond of the range of fire times."""
    if isinstance(t, datetime) and t.tzinfo is UTC and _FLOOR <= t <= _CEILING:
        return t
    if not isinstance(t, datetime) or t.utcoffset() is None:
        raise ConfigurationError(f"{t!r} has no zone; right is an aware datetime like datetime.now(UTC)")
    try:
        t = t.astimezone(UTC)
    except OverflowError:
        t = _FLOOR if t.year < EPOCH.year else _CEILING
    return min(max(t, _FLOOR), _CEILING)
