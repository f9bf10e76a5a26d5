"""A schedule object of Celery's by its own rule, behind the three methods of a schedule.

The object is asked as beat would ask it, with its clock frozen at the instant in question: "I last ran at t; at which
instant are you due?" What it answers must not depend on who asks, or two beats would name two slots for one event:
fire times are whole seconds, an answer that varies with the point of asking by fractions of a second (solar events
do, by a tenth) is settled from a point that all beats share, and a rule that only counts from its last run is refused.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from slotqueue.errors import ConfigurationError
from slotqueue.schedules import EPOCH

_MICROSECOND, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)
_ANCHOR_EVERY = timedelta(hours=2)
_QUESTIONS = 20_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LONGEST_LOOK_BACK = timedelta(days=3660)
_REFERENCE = datetime(2024, 1, 1, 0, 0, 30, tzinfo=UTC)


class OwnRule:
    """Implements `slotqueue.protocols.Schedule` by asking a schedule object of Celery's.

    Args:
        rule: any object with `is_due(last_run_at)`; it is copied.
        app: the Celery application.

    Raises:
        ConfigurationError: the object cannot be asked, or counts from its last run only.
    """

    def __init__(self, rule: Any, app: Any) -> None:  # noqa: ANN401 - Celery is untyped, and the object may be anybody's
        if not callable(getattr(rule, "is_due", None)):
            raise ConfigurationError(
                f"{rule!r} is no schedule; use a number of seconds, a timedelta, crontab(), solar() or an object with "
                "is_due(last_run_at)",
                argument="schedule",
            )
        self._text = _ADDRESS.sub("", repr(rule))
        self._zone = _zone_of(rule, app)
        self._now = _REFERENCE
        self._lock = threading.Lock()
        self._rule = copy.copy(rule)
        self._rule.app = app
        try:
            self._rule.nowfun = self._rule.now = lambda: self._now.astimezone(self._zone)
        except AttributeError as error:
            raise ConfigurationError(
                f"the clock of {rule!r} cannot be set; a schedule needs an attribute nowfun", argument="schedule"
            ) from error
        self._check_repeatable()

    def __repr__(self) -> str:
        return f"OwnRule({self._text})"

    def __str__(self) -> str:
        """Return the text that identifies this schedule."""
        return f"celery {self._text} {self._zone}"

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Iterate the fire times in [start, end), oldest first."""
        at = self.next_after(start - _MICROSECOND)
        while at is not None and at < end:
            yield at
            at = self.next_after(at)

    def next_after(self, t: datetime) -> datetime | None:
        """Return the first fire time strictly later than `t`; None where the rule names none."""
        start = t.astimezone(UTC)
        for _ in range(3):
            found = self._ask(start)
            if found is None:
                return None
            fire = self._settled(found)
            if fire > t:
                return fire
            start = max(found, fire) + _SECOND
        return None

    def latest_at(self, t: datetime) -> datetime | None:
        """Return the newest fire time at or before `t`; None where there is none within ten years."""
        step = timedelta(minutes=1)
        while step < _LONGEST_LOOK_BACK:
            found = self.next_after(t - step)
            if found is not None and found <= t:
                while (following := self.next_after(found)) is not None and following <= t:
                    found = following
                return found
            step *= 4
        return None

    def _settled(self, found: datetime) -> datetime:
        """Ask again from a point that every beat shares; the answers agree but for fractions of a second."""
        again = self._ask(EPOCH + ((found - EPOCH) // _ANCHOR_EVERY - 1) * _ANCHOR_EVERY)
        return _whole(again if again is not None and abs(again - found) < _SECOND else found)

    def _ask(self, last: datetime) -> datetime | None:
        """Step a frozen clock from `last` on until the rule is due, by the waits that it asks for."""
        with self._lock:
            last_run_at = last.astimezone(self._zone)
            self._now = last
            for _ in range(_QUESTIONS):
                is_due, wait = self._rule.is_due(last_run_at)
                if is_due and self._now > last:
                    return self._now
                try:
                    self._now += max(timedelta(seconds=wait), _MICROSECOND) if wait > 0 else _SECOND
                except OverflowError:
                    return None
        raise ValueError(f"{self._text} was not due at any of the {_QUESTIONS} instants after {last} that it named")

    def _check_repeatable(self) -> None:
        first = self.next_after(_REFERENCE)
        if first is None:
            return
        middle = _REFERENCE + (first - _REFERENCE) / 2
        if self.next_after(middle) != first:
            raise ConfigurationError(
                f"{self._text} counts from its last run, so that each beat would have slots of its own; "
                "use an interval, a crontab, or an object whose next run is the same whenever it is asked",
                argument="schedule",
            )


def _whole(instant: datetime) -> datetime:
    return EPOCH + -(-(instant - EPOCH) // _SECOND) * _SECOND


def _zone_of(rule: Any, app: Any) -> Any:  # noqa: ANN401 - as above
    """The zone in which the object is used to being asked: that of its own clock, or the application's."""
    nowfun = getattr(rule, "nowfun", None)
    own = getattr(nowfun(), "tzinfo", None) if callable(nowfun) else None
    return own or app.timezone
