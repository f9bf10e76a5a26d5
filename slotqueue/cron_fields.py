"""What a cron expression says, and what a time zone makes of its wall times: pure functions, no evaluation.

The expression is brought to one spelling (five or six fields, single spaces, upper case), and what cron implementations
read in different ways is refused or written out, so that nothing is guessed later.

Source: Debian's crontab(5) for fields and names; its cron(8) for what happens at a change of the clocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from slotqueue.errors import InvalidSchedule, near_names

WallAfter = Callable[[datetime], datetime | None]

ALIASES = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}
# Name, last value, and what the field takes, in the order of the six fields.
FIELDS = (
    ("second", 59, "0-59"),
    ("minute", 59, "0-59"),
    ("hour", 23, "0-23"),
    ("day-of-month", 31, "1-31, L or LW, on a date that its months have"),
    ("month", 12, "1-12 or JAN-DEC"),
    ("day-of-week", 7, "0-7 (0 and 7 are Sunday) or SUN-SAT"),
)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NAMES = {
    "month": {text: number for number, text in enumerate(_MONTHS, start=1)},
    "day-of-week": {text: number for number, text in enumerate(_WEEKDAYS)},
}
_PRINTABLE_OR_BLANK = re.compile(r"[ \t\r\n!-~]*")
_VALUE_WITH_STEP = re.compile(r"(?:^|,)([^,/*-]+)/([^,]*)")
_RANGE = re.compile(r"([0-9]{1,9}|[A-Z]{3})-([0-9]{1,9}|[A-Z]{3})(?:/0*([1-9][0-9]{0,8}))?")
_ZONE_KEY = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
# Files of the host's zone directory that `zoneinfo` would open although they are no IANA zone: the host's own zone, and
# copies of all zones, one of them with leap seconds.
_HOST_ZONES = re.compile(r"localtime|posixrules|(?:posix|right)/.*")
_LONGEST_ZONE = 40
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
# From this year on every zone repeats its last rule, and the calendar repeats itself after 400 years: wall times that
# all fell into gaps for that long will do so for ever.
_RULES_SETTLED, _CALENDAR_CYCLE = 2040, 400


def normalise(expression: str, *, seconds: bool) -> str:
    """Return `expression` in its one spelling: upper case, single spaces, `@daily` and its kind written out.

    Args:
        expression: five fields, or six (the first for seconds) if `seconds`.
        seconds: whether there is a field for seconds.

    Raises:
        InvalidSchedule: no text, the wrong number of fields, an unknown alias, or a step behind a single value.
    """
    if not isinstance(expression, str) or not _PRINTABLE_OR_BLANK.fullmatch(expression):
        raise InvalidSchedule(f"{expression!r} is no cron expression; right is plain ASCII text like '0 3 * * *'")
    return _normalised(expression, seconds=seconds)


@lru_cache(maxsize=4096)
def _normalised(expression: str, *, seconds: bool) -> str:
    fields = expression.upper().split()
    if len(fields) == 1 and fields[0].startswith("@"):
        if fields[0] not in ALIASES:
            known = ", ".join(ALIASES).lower()
            raise InvalidSchedule(f"{expression!r} names no fire times; right is one of {known}, or five fields")
        if seconds:
            raise InvalidSchedule(f"{expression!r} has no field for seconds; leave out seconds=True")
        return ALIASES[fields[0]]
    if len(fields) != 5 + seconds:
        right = "six fields (seconds first)" if seconds else "five fields (six, seconds first, with seconds=True)"
        raise InvalidSchedule(f"{expression!r} has {len(fields)} fields; right is {right}")
    for field, (name, last, _) in zip(fields, FIELDS[-len(fields) :], strict=True):
        for value, step in _VALUE_WITH_STEP.findall(field) if "/" in field else ():
            raise InvalidSchedule(
                f"{expression!r}: {value}/{step} in {name} means different things to different crons; "
                f"right is {value}-{last}/{step}, or only {value}"
            )
    return " ".join(fields)


def spell_out(fields: list[str]) -> str:
    """Return six normalised fields as an expression in which no range needs a reader's judgement.

    A range of weekdays that wraps past Saturday is written out (`FRI-MON` as `5,6,7,1`). A range of a single value
    loses its step (`1-1/5` is 1; cronsim would read 1-59/5).
    """
    return " ".join(
        ",".join(_spell_out(term, name) for term in field.split(","))
        for field, (name, _, _) in zip(fields, FIELDS, strict=True)
    )


def _spell_out(term: str, name: str) -> str:
    found = _RANGE.fullmatch(term)
    if found is None:
        return term
    first, last = (_number(text, name) for text in found.group(1, 2))
    if first is None or last is None:
        return term
    if first == last:
        return str(first)
    if first < last or name != "day-of-week" or not first <= 7:
        return term
    days = [*range(first, 8), *range(1, last + 1)]
    return ",".join(str(day) for day in days[:: int(found[3] or 1)])


def _number(text: str, name: str) -> int | None:
    if text.isdigit():
        return int(text)
    return _NAMES.get(name, {}).get(text)


def load_zone(tz: str) -> ZoneInfo:
    """Return the IANA zone `tz`.

    Raises:
        InvalidSchedule: no text, or no key of the IANA time zone database.
    """
    if not isinstance(tz, str):
        raise InvalidSchedule(f"{tz!r} is no zone name; right is a text like 'Europe/Berlin'", argument="tz")
    return _zone(tz)


@cache
def _zone(tz: str) -> ZoneInfo:
    if _ZONE_KEY.fullmatch(tz) and not _HOST_ZONES.fullmatch(tz):
        try:
            return ZoneInfo(tz)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise _unknown(tz) from error
    raise _unknown(tz)


def _unknown(tz: str) -> InvalidSchedule:
    near = near_names(tz, sorted(available_timezones())) if len(tz) <= _LONGEST_ZONE else ""
    hint = near or "right is an IANA name like 'Europe/Berlin'"
    return InvalidSchedule(f"{tz!r} is no known time zone; {hint}", argument="tz")


_MOST_CHANGES = 4096
_changes: dict[tuple[ZoneInfo, date, timedelta, timedelta], datetime] = {}
"""Clock changes already searched for: every wall time of one gap or fold asks for the same."""


def first_fire(
    instant: datetime, zone: ZoneInfo, wall_after: WallAfter, *, is_fixed: bool, last_year: int | None = None
) -> datetime | None:
    """Return the first instant strictly later than `instant` that fires, by the rule for clock changes.

    Args:
        instant: aware UTC instant.
        zone: the zone whose clock is on the wall.
        wall_after: gives the next matching naive wall time strictly after a naive wall time, or None.
        is_fixed: whether the FIXED half of the rule holds (gap: at its end; fold: first pass) or the WILDCARD one.
        last_year: the year after which nothing is known to fire; None where that is not known.

    Raises:
        OverflowError: `datetime` cannot hold the answer.
    """
    constant = zone.utcoffset(None)
    if constant is not None:
        wall = wall_after((instant + constant).replace(tzinfo=None))
        return None if wall is None else (wall - constant).replace(tzinfo=UTC)
    local = instant.astimezone(zone)
    wall = local.replace(tzinfo=None, fold=0)
    if is_fixed:
        # A gap that ends off the minute fires at the next one: just behind its end that is still to come.
        earlier = (instant - _MINUTE).astimezone(zone)
        if earlier.utcoffset() != local.utcoffset():
            wall = earlier.replace(tzinfo=None, fold=0)
    if last_year is None:
        last_year = max(wall.year, _RULES_SETTLED) + _CALENDAR_CYCLE
    found = _first_later(wall, instant, zone, wall_after, is_fixed=is_fixed, last_year=last_year)
    if is_fixed or local.fold:
        return found
    first, second = _offsets(wall, zone)
    if first > second:
        # The first pass of a fold: its wall times come once more before any later one.
        change = _clock_change(wall, zone)
        if found is None or found >= change:
            again = (change + second).replace(tzinfo=None) - _SECOND
            return _first_later(again, change - _SECOND, zone, wall_after, is_fixed=False, last_year=last_year)
    return found


def _first_later(
    wall: datetime, instant: datetime, zone: ZoneInfo, wall_after: WallAfter, *, is_fixed: bool, last_year: int
) -> datetime | None:
    following = wall_after(wall)
    while following is not None and following.year <= last_year:
        first, second = _offsets(following, zone)
        if first < second:
            change = _clock_change(following, zone)
            wall_at_end = (change + second).replace(tzinfo=None)
            if is_fixed:
                change += timedelta(seconds=-wall_at_end.second % 60)
                if change > instant:
                    return change
            following = wall_after(wall_at_end - _SECOND)
            continue
        found = (following - first).replace(tzinfo=UTC)
        if found <= instant and not is_fixed:
            found = (following - second).replace(tzinfo=UTC)
        if found > instant:
            return found
        following = wall_after(following)
    return None


def _offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offsets that a naive wall time has on its first and second pass.

    Equal for an ordinary wall time; in a gap the first is the smaller, in a fold the larger.
    """
    local = wall.replace(tzinfo=zone)
    return cast("timedelta", local.utcoffset()), cast("timedelta", local.replace(fold=1).utcoffset())


def _clock_change(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant after the gap that holds a naive wall time, or of the second pass of its fold."""
    before, after = _offsets(wall, zone)
    key = (zone, wall.date(), before, after)
    change = _changes.get(key)
    if change is None:
        if len(_changes) >= _MOST_CHANGES:
            _changes.clear()
        change = _changes[key] = _search_change(wall, zone, before, after)
    return change


def _search_change(wall: datetime, zone: ZoneInfo, before: timedelta, after: timedelta) -> datetime:
    low = (wall - max(before, after)).replace(tzinfo=UTC)
    high = (wall - min(before, after)).replace(tzinfo=UTC)
    while high - low > _SECOND:
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high
