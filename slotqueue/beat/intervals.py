"""Celery's intervals on the epoch grid: every beat computes the same instants, whenever it was started.

Celery counts an interval from the last run, so that each beat has a grid of its own and a restart moves it. Here the
grid is anchored at the Unix epoch. A slot is named by a whole second: an interval that is no whole number of seconds
fires at the first whole second of each grid point, and one below a second is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from slotqueue.errors import ConfigurationError
from slotqueue.protocols import Schedule
from slotqueue.schedules import EPOCH, Every

_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_REFERENCE = datetime(2024, 1, 1, tzinfo=UTC)


def interval_of(every: timedelta, *, relative: bool, zone: str) -> Schedule:
    """Translate an interval.

    Args:
        every: 1 s or more.
        relative: whether fire times are rounded down to the unit of the interval, as Celery does: an interval of days
            fires at local midnight, one of hours at the full hour, one of minutes at the full minute.
        zone: IANA name of the zone whose midnight counts.

    Raises:
        ConfigurationError: below a second, or more than ten years.
    """
    if every < _SECOND:
        raise ConfigurationError(
            f"an interval of {every.total_seconds():g} s is below a second, and a slot is named by its second; "
            "use 1 s or more, and a loop in the task for what is quicker",
            argument="schedule",
        )
    if not relative:
        return Every(every) if not every.microseconds else Fractional(every)
    if every >= _DAY:
        return Midnights(every // _DAY, zone)
    unit = next(unit for unit in (_HOUR, _MINUTE, _SECOND) if every >= unit)
    period = every // unit * unit
    shift = -(_REFERENCE.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()) % unit
    return Every(period, offset=shift)


@dataclass(frozen=True, slots=True)
class Fractional:
    """Fire at the first whole second of each multiple of a period since the epoch; `period` over 1 s."""

    period: timedelta

    def __str__(self) -> str:
        """Return the text that identifies this schedule."""
        return f"every {self.period.total_seconds():g}s"

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Iterate the fire times in [start, end), oldest first."""
        at = self.next_after(start - timedelta(microseconds=1))
        while at < end:
            yield at
            at = self.next_after(at)

    def next_after(self, t: datetime) -> datetime:
        """Return the first fire time strictly later than `t`."""
        # The grid point whose whole second is later than t is the first one behind the whole second that t lies in.
        return self._whole((t - EPOCH) // _SECOND * _SECOND // self.period + 1)

    def latest_at(self, t: datetime) -> datetime:
        """Return the newest fire time at or before `t`."""
        return self._whole((t - EPOCH) // _SECOND * _SECOND // self.period)

    def _whole(self, index: int) -> datetime:
        return EPOCH + -(-(index * self.period) // _SECOND) * _SECOND


@dataclass(frozen=True, slots=True)
class Midnights:
    """Fire at each `days`-th local midnight, counted from the epoch's date."""

    days: int
    zone: str

    def __str__(self) -> str:
        """Return the text that identifies this schedule."""
        return f"midnight every {self.days} days {self.zone}"

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Iterate the fire times in [start, end), oldest first."""
        at = self.next_after(start - timedelta(microseconds=1))
        while at < end:
            yield at
            at = self.next_after(at)

    def next_after(self, t: datetime) -> datetime:
        """Return the first fire time strictly later than `t`."""
        number = self._number(t)
        while (found := self._midnight(number)) <= t:
            number += 1
        return found

    def latest_at(self, t: datetime) -> datetime:
        """Return the newest fire time at or before `t`."""
        number = self._number(t) + 1
        while (found := self._midnight(number)) > t:
            number -= 1
        return found

    def _number(self, t: datetime) -> int:
        date = t.astimezone(ZoneInfo(self.zone)).date()
        return (date - EPOCH.date()).days // self.days

    def _midnight(self, number: int) -> datetime:
        date = EPOCH.date() + timedelta(days=number * self.days)
        # In a gap `fold=0` gives the first instant after it, in a fold the first pass.
        return datetime(date.year, date.month, date.day, tzinfo=ZoneInfo(self.zone)).astimezone(UTC)
