"""Celery's `crontab` as `Cron`: the same wall times, with Debian's meaning where clocks change.

The translation reads the values that Celery expanded, not the text, so that lists, sets, names and ranges mean here
what they mean there. Of the text only one thing counts: whether minute or hour begins with `*`, which decides what
happens where clocks change (`slotqueue.schedules`).

Two readings of Celery's differ from cron's and are kept: a date must match day-of-month and day-of-week, and
`day_of_month="*/2"` is every other day from the 1st.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from functools import cache

from celery.schedules import crontab

from slotqueue.errors import ConfigurationError, InvalidSchedule
from slotqueue.schedules import Cron

_LEADING_STAR = re.compile(r"\*(?:/(\w+))?")
_RULES = ("remaining_delta", "remaining_estimate", "_delta_to_next", "is_due", "now")
_ONLY_ADD_A_ZONE = {"django_celery_beat.tzcrontab"}
"""Modules whose crontab overrides Celery's rule only to apply it in a zone of its own."""


def cron_of(rule: crontab) -> Cron | None:
    """Translate a crontab.

    Returns:
        None where it cannot be said as `Cron`: a subclass that overrides the rule, a `nowfun` of its own, or a zone
        without an IANA name. Such a one runs by its own rule.

    Raises:
        ConfigurationError: an empty field, or days that never come together.
    """
    zone = zone_name(rule.tz)
    if zone is None or not _is_plain(rule):
        return None
    expression = " ".join(
        (
            _field(rule.minute, rule._orig_minute, 0, 59, keeps_star=True),  # noqa: SLF001 - Celery keeps the text nowhere else
            _field(rule.hour, rule._orig_hour, 0, 23, keeps_star=True),  # noqa: SLF001 - as above
            _field(rule.day_of_month, None, 1, 31),
            _field(rule.month_of_year, None, 1, 12),
            _field(rule.day_of_week, None, 0, 6),
        )
    )
    return Cron(expression, tz=zone, both_days=True)


def zone_name(zone: tzinfo) -> str | None:
    """The IANA name of a time zone; None where it has none that this machine knows."""
    names = (getattr(zone, "key", None), getattr(zone, "zone", None), str(zone))
    return next((name for name in names if isinstance(name, str) and _is_zone(name)), None)


@cache
def _is_zone(name: str) -> bool:
    try:
        Cron("0 0 * * *", tz=name)
    except InvalidSchedule:
        return False
    return True


def _is_plain(rule: crontab) -> bool:
    kind = type(rule)
    if kind.__module__ in _ONLY_ADD_A_ZONE:
        return True
    is_overridden = any(getattr(kind, name, None) is not getattr(crontab, name, None) for name in _RULES)
    return rule.nowfun is None and not is_overridden


def _field(values: set[int], text: object, first: int, last: int, *, keeps_star: bool = False) -> str:
    numbers = sorted({int(value) for value in values})
    if not numbers:
        raise ConfigurationError("a field of its crontab is empty, so it never runs", argument="schedule")
    if len(numbers) == last - first + 1:
        return "*"
    listed = ",".join(map(str, numbers))
    star = _LEADING_STAR.match(text) if keeps_star and isinstance(text, str) else None
    if star is None or not star[1]:
        return listed
    # The step's values are among the numbers, so naming both changes nothing but how the field begins.
    step = min(int(star[1]), last - first + 1)
    return f"*/{step},{listed}" if set(range(first, last + 1, step)) != set(numbers) else f"*/{step}"
