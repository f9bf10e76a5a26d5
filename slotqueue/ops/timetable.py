"""When jobs should have fired, from the registry alone; an application that is known adds schedules of its own kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.schedule_text import parse_schedule
from slotqueue.schedules import Cron, Every
from slotqueue.slots import EPOCH, key_at, to_ms
from slotqueue.store.registry import JobEntry, Registry, Span

_MILLISECOND = timedelta(milliseconds=1)


class Fires(NamedTuple):
    """Fire times of a schedule in ms, oldest first, and the tails of their slot keys."""

    times: list[int]
    tails: list[str]

    def within(self, after: int, until: int) -> Fires:
        """Those in (after, until]."""
        if not self.times or (after < self.times[0] and self.times[-1] <= until):
            return self
        first, end = bisect_right(self.times, after), bisect_right(self.times, until)
        return Fires(self.times[first:end], self.tails[first:end])


def schedule_from(text: str) -> Cron | Every | None:
    """Read the text of a schedule; None for that of any other kind, which only its application can compute."""
    try:
        return parse_schedule(text)
    except ConfigurationError:  # of another kind, of a newer version, or in a zone that this machine does not know
        return None


class Timetable:
    """The schedules of a namespace. Each schedule version is read and computed once, however many jobs share it.

    Args:
        registry: what the namespace knows.
        jobs: the application's by name, None where no application is known.
    """

    def __init__(self, registry: Registry, jobs: Mapping[str, Job] | None) -> None:
        self.registry = registry
        self._by_version: dict[str, Any] = {job.schedule_version: job.schedule for job in (jobs or {}).values()}
        self._fires: dict[str, Fires] = {}
        self._next: dict[tuple[str, int], int | None] = {}

    def schedule(self, version: str) -> Any | None:  # noqa: ANN401 - any object with the methods of a schedule
        """The schedule of a version; None where only its application could compute it."""
        if version not in self._by_version:
            self._by_version[version] = schedule_from(self.registry.schedules.get(version, ""))
        return self._by_version[version]

    def current(self, entry: JobEntry) -> Span | None:
        """The newest schedule version of a job that is in force."""
        return max((span for span in entry.spans if span.until is None), key=lambda span: span.since, default=None)

    def next_after(self, version: str, ms: int) -> int | None:
        """The next fire time of a schedule version, ms; None where there is none, or it cannot be computed.

        Raises:
            ConfigurationError: the schedule fails.
        """
        if (version, ms) not in self._next:
            schedule = self.schedule(version)
            found = _ask(version, lambda: schedule.next_after(EPOCH + timedelta(milliseconds=ms))) if schedule else None
            self._next[version, ms] = None if found is None else to_ms(found)
        return self._next[version, ms]

    def fires(self, version: str, after: int, until: int, most: int) -> Fires:
        """The fire times of a schedule version in (after, until]; the same window at each call.

        Args:
            version: one that `schedule` knows.
            after, until: ms.
            most: how many are computed; the caller finds one more where there are more.

        Raises:
            ConfigurationError: the schedule fails.
        """
        if version not in self._fires:
            schedule = self.schedule(version)
            start, end = (EPOCH + timedelta(milliseconds=ms) + _MILLISECOND for ms in (after, until))
            found = _ask(version, lambda: [at for at, _ in zip(schedule.between(start, end), range(most + 1))])  # type: ignore[union-attr]  # noqa: B905 - the shorter one ends it
            self._fires[version] = Fires([to_ms(at) for at in found], [key_at("", "", at)[2:] for at in found])
        return self._fires[version]


def _ask(version: str, question: Any) -> Any:  # noqa: ANN401 - a schedule may be anybody's code
    try:
        return question()
    except Exception as error:
        raise ConfigurationError(
            f"the schedule {version} fails: {type(error).__name__}: {error}", argument="schedule"
        ) from error
