"""Schedules as text: what is stored and said on the command line, and read back.

`str(schedule)` is the one spelling, "cron 0 3 * * * Europe/Berlin" and "every 300s offset 5s"; `parse_schedule` reads
it, and the ways in which people say the same.
"""

from __future__ import annotations

import re
from datetime import timedelta

from slotqueue.errors import InvalidSchedule
from slotqueue.schedules import Cron, Every

_FIELD = re.compile(r"(?:[0-9*/,#LW-]|SUN|MON|TUE|WED|THU|FRI|SAT)+", re.IGNORECASE)
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_UNITS = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), "seconds"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "minutes"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "hours"),
    **dict.fromkeys(("d", "day", "days"), "days"),
}
_RIGHT = "right is a text like 'cron 0 3 * * * Europe/Berlin' or 'every 5 min'"


def schedule_text(schedule: object) -> str:
    """Write a schedule so that `parse_schedule` gives an equal one.

    Raises:
        InvalidSchedule: neither `Cron` nor `Every`; others live in code only.
    """
    if not isinstance(schedule, Cron | Every):
        raise InvalidSchedule(f"{schedule!r} cannot be stored; right is Cron(...), Every(...) or a text of one")
    return str(schedule)


def parse_schedule(text: str) -> Cron | Every:
    """Read a schedule from its text.

    Args:
        text: "cron", an expression of five or six fields or an alias such as "@daily", and a zone where it is not UTC;
            or "every", a period such as "5 min", "1 h 30 min" or "300s", and "offset" with its length, if any.

    Raises:
        InvalidSchedule: says what would be right.
    """
    if not isinstance(text, str):
        raise InvalidSchedule(f"{text!r} is no text of a schedule; {_RIGHT}")
    kind, _, rest = text.strip().partition(" ")
    match kind.lower().removesuffix(":"):
        case "cron":
            return _cron(text, rest.split())
        case "every":
            return _every(text, rest)
        case word if word.startswith("@"):
            return _cron(text, text.split())
    is_expression = len(text.split()) >= 5 and all(map(_FIELD.fullmatch, text.split()[:5]))
    hint = f"put 'cron' in front: {f'cron {text.strip()}'!r}" if is_expression else _RIGHT
    raise InvalidSchedule(f"{text!r} is no schedule; {hint}")


def _cron(text: str, words: list[str]) -> Cron:
    both_days = [word.lower() for word in words[-2:]] == ["both", "days"]
    if both_days:
        words = words[:-2]
    if not words:
        raise InvalidSchedule(f"{text!r} has no expression; {_RIGHT}")
    has_zone = len(words) > 1 and not _FIELD.fullmatch(words[-1])
    fields, tz = (words[:-1], words[-1]) if has_zone else (words, "UTC")
    return Cron(" ".join(fields), tz, seconds=len(fields) == 6, both_days=both_days)


def _every(text: str, said: str) -> Every:
    period, offset, shift = said.partition("offset")
    return Every(_span(text, period.rstrip(" ,")), offset=_span(text, shift) if offset else 0)


def _span(text: str, said: str) -> timedelta:
    parts: dict[str, float] = {}
    at = 0
    while found := _PART.match(said, at):
        unit = _UNITS.get(found[2].lower())
        if unit is None or unit in parts or len(found[1]) > 12:
            break
        parts[unit], at = float(found[1]), found.end()
    if not parts or said[at:].strip():
        raise InvalidSchedule(
            f"{text!r} says no length of time; right is 'every 5 min', 'every 1 h 30 min' or 'every 90s'"
        )
    return timedelta(**parts)
