"""A schedule cut to a window, so that a demo or a simulation has a first and a last slot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotqueue.protocols import Schedule

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Window:
    """The fire times of another schedule in `[start, end)`, aware instants; none where they are equal."""

    schedule: Schedule
    start: datetime
    end: datetime

    def __str__(self) -> str:
        """Return the text that identifies this schedule."""
        return f"{self.schedule} from {self.start.isoformat()} to {self.end.isoformat()}"

    def between(self, start: datetime, end: datetime) -> Iterable[datetime]:
        """See `Schedule.between`."""
        first, last = max(start, self.start), min(end, self.end)
        return self.schedule.between(first, last) if first < last else ()

    def next_after(self, instant: datetime) -> datetime | None:
        """See `Schedule.next_after`."""
        following = self.schedule.next_after(max(instant, self.start - _MICROSECOND))
        return following if following is not None and following < self.end else None

    def latest_at(self, instant: datetime) -> datetime | None:
        """See `Schedule.latest_at`."""
        latest = self.schedule.latest_at(min(instant, self.end - _MICROSECOND))
        return latest if latest is not None and latest >= self.start else None
