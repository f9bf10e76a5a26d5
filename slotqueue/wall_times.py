"""Which wall times a cron expression names: a matcher over cronsim, shared by all schedules that read the same.

cronsim says which values each field has and which days match; nothing is asked of it that depends on a zone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from weakref import WeakValueDictionary

from cronsim import CronSim, CronSimError

from slotqueue.cron_fields import FIELDS, spell_out
from slotqueue.errors import InvalidSchedule

_DAY = timedelta(days=1)
_SOME_DAY = datetime(2000, 12, 31)  # noqa: DTZ001 - wall times have no zone; the 28 years from 2001 hold every kind of year


class WallTimes(CronSim):
    """The naive wall times that match: fields and calendar are cronsim's, a time of day is looked up in tables."""

    is_fixed: bool
    seconds_after: bytes
    minutes_after: bytes
    hours_after: bytes

    def after(self, wall: datetime) -> datetime | None:
        """Return the first matching wall time strictly after `wall`, None if there is none for 50 years."""
        if self._has_day(wall):
            later = self._later_that_day(wall)
            if later is not None:
                return later
        following = wall.replace(hour=0, minute=0, second=0, microsecond=0) + _DAY
        day = following if self._has_day(following) else self._first_day_from(following)
        if day is None:
            return None
        return day.replace(hour=self.hours_after[-1], minute=self.minutes_after[-1], second=self.seconds_after[-1])

    def _has_day(self, wall: datetime) -> bool:
        return wall.month in self.months and self.match_day(wall)

    def _first_day_from(self, day: datetime) -> datetime | None:
        """Return the first matching day from `day`, a midnight, on; None if there is none for 50 years."""
        search = WallTimes.__new__(WallTimes)
        search.__dict__.update(self.__dict__)
        search.dt = day
        while search.dt.year <= day.year + 50:
            search.advance_month()
            if not search.advance_day():
                return search.dt
        return None

    def _later_that_day(self, wall: datetime) -> datetime | None:
        hour, minute = wall.hour, wall.minute
        if hour in self.hours:
            if minute in self.minutes and (second := self.seconds_after[wall.second]) < 60:
                return wall.replace(second=second, microsecond=0)
            if (minute := self.minutes_after[minute]) < 60:
                return wall.replace(minute=minute, second=self.seconds_after[-1], microsecond=0)
        if (hour := self.hours_after[hour]) < 24:
            return wall.replace(hour=hour, minute=self.minutes_after[-1], second=self.seconds_after[-1], microsecond=0)
        return None


class _Values(set[Any]):
    """The values of one field.

    `after[v]` is the first of them above v, 255 if there is none; `after[-1]` is the first of all.
    """

    __slots__ = ("after",)

    def __init__(self, values: set[Any], size: int) -> None:
        super().__init__(values)
        after, upcoming = [], 255
        for value in reversed(range(size)):
            after.append(upcoming)
            if value in values:
                upcoming = value
        self.after = bytes([*reversed(after), upcoming])


_known: WeakValueDictionary[tuple[str, bool], WallTimes] = WeakValueDictionary()
_known_values: WeakValueDictionary[tuple[str, str], _Values] = WeakValueDictionary()
_ATTRIBUTES = ("seconds", "minutes", "hours", "days", "months", "weekdays")


def wall_times_of(expression: str, *, both_days: bool) -> WallTimes:
    """Return the matcher of a normalised expression: one for all schedules that read the same, as long as they live."""
    walls = _known.get((expression, both_days))
    if walls is None:
        walls = _known[expression, both_days] = _parse(expression, both_days=both_days)
    return walls


def in_english(expression: str) -> str:
    """Say when a normalised expression fires: "At 03:00 every day"; the expression where cronsim has no words."""
    try:
        return CronSim(spell_out(_six(expression)), _SOME_DAY).explain()
    except (CronSimError, ValueError):
        return expression


def _six(expression: str) -> list[str]:
    fields = expression.split()
    return fields if len(fields) == 6 else ["0", *fields]


def _parse(expression: str, *, both_days: bool) -> WallTimes:
    """Return a new matcher. Matchers share the values of fields that read the same."""
    fields = _six(expression)
    try:
        walls = WallTimes(spell_out(fields), _SOME_DAY)
    except (CronSimError, ValueError) as error:
        raise InvalidSchedule(_what_is_wrong(expression, fields, str(error))) from error
    walls.day_and = walls.day_and or both_days
    walls.is_fixed = not fields[1].startswith("*") and not fields[2].startswith("*")
    for text, (name, last, _), attribute in zip(fields, FIELDS, _ATTRIBUTES, strict=True):
        values = _known_values.get((name, text))
        if values is None:
            values = _known_values[name, text] = _Values(getattr(walls, attribute), last + 1)
        setattr(walls, attribute, values)
        if attribute in {"seconds", "minutes", "hours"}:
            setattr(walls, f"{attribute}_after", values.after)
    if _may_never_come(walls) and walls.after(walls.dt) is None:
        raise InvalidSchedule(
            f"{expression!r} never fires: no date is day-of-month {fields[3]!r} of month {fields[4]!r} and day-of-week "
            f"{fields[5]!r}"
        )
    del walls.parts
    return walls


def _may_never_come(walls: WallTimes) -> bool:
    """Whether day and weekday are both restricted and must both match; cronsim has checked days against months."""
    return walls.day_and and not walls.days.issuperset(range(1, 32)) and not walls.weekdays.issuperset(range(7))


def _is_sound(fields: list[str]) -> bool:
    try:
        WallTimes(spell_out(fields), _SOME_DAY)
    except (CronSimError, ValueError):
        return False
    return True


def _what_is_wrong(expression: str, fields: list[str], problem: str) -> str:
    if problem == "Bad day-of-month" and _is_sound([*fields[:4], "*", fields[5]]):
        return f"{expression!r} never fires: no month of {fields[4]!r} has a day-of-month {fields[3]!r}"
    for text, (name, _, domain) in zip(fields, FIELDS, strict=True):
        if problem == f"Bad {name}":
            return f"{expression!r}: bad {name} {text!r}; right is {domain}, * and lists, upward ranges and steps of it"
    return f"{expression!r}: {problem}; right is an expression like '0 3 * * *'"
