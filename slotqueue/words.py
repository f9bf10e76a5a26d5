"""How instants, durations and names are said to people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from slotqueue.errors import near_names
from slotqueue.slots import from_ms

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def instant(at: datetime | int) -> str:
    """Say an aware instant, or ms since the epoch, in UTC: "2026-10-02T03:00:00Z", with ms where there are any."""
    moment = from_ms(at) if isinstance(at, int) else at.astimezone(UTC)
    has_ms = moment.microsecond >= 1000
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds" if has_ms else "seconds") + "Z"


def nothing_known(namespace: str) -> str:
    """Say that a namespace is empty."""
    return f"no job is known in the namespace {namespace!r}; no replica has registered there"


def duration(ms: float) -> str:
    """Say how long, with two units at most: "12 ms", "3.2 s", "4 min 10 s", "3 d 4 h"."""
    ms = abs(round(ms))
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    words: list[str] = []
    for size, unit in _UNITS:
        count, ms = divmod(ms, size)
        if count or words:
            words.append(f"{count} {unit}" if count else "")
        if len(words) == 2:
            break
    return " ".join(word for word in words if word)


def schedule_words(schedule: object) -> str:
    """Say a schedule as its text does, but a period with its units: "every 5 min", "every 1 h, offset 5 min"."""
    period, offset = getattr(schedule, "period", None), getattr(schedule, "offset", None)
    if not isinstance(period, timedelta):
        return str(schedule)
    said = f"every {_exactly(period)}"
    return f"{said}, offset {_exactly(offset)}" if isinstance(offset, timedelta) and offset else said


def _exactly(span: timedelta) -> str:
    ms, words = round(span / timedelta(milliseconds=1)), []
    for size, unit in (*_UNITS, (1, "ms")):
        count, ms = divmod(ms, size)
        words.append(f"{count} {unit}" if count else "")
    return " ".join(filter(None, words))


def within(at: int, now: int) -> str:
    """Say how far an instant is from now: "in 3 s", "4 min 10 s ago"."""
    return f"in {duration(at - now)}" if at > now else f"{duration(now - at)} ago"


def count(number: int, noun: str) -> str:
    """Say how many: "1 slot", "3 slots"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known names come close, or which there are: a sentence, "" where nothing is known."""
    names = list(known)
    if not names:
        return ""
    if near := near_names(name, names):
        return near
    shown = ", ".join(map(repr, sorted(names)[:10]))
    return f"known are {shown}{f' and {len(names) - 10} more' if len(names) > 10 else ''}"


def in_words(schedule: object) -> str:
    """Say a schedule in English: "at 03:00 every day, Europe/Berlin", "every 5 min"."""
    words, zone = getattr(schedule, "words", None), getattr(schedule, "tz", None)
    if not isinstance(words, str):
        return schedule_words(schedule)
    return f"{words[:1].lower()}{words[1:]}" + (f", {zone}" if isinstance(zone, str) else "")
