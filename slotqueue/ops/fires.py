"""When jobs fire next, by their schedules alone: no Redis is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from slotqueue.errors import ConfigurationError
from slotqueue.protocols import Schedule
from slotqueue.slots import key_at


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire time to come.

    Args:
        job: the job's name.
        fire_time: aware UTC instant.
        local: the same instant in the zone of the job's schedule.
        zone: the name of that zone.
        key: the key of its slot.
    """

    job: str
    fire_time: datetime
    local: datetime
    zone: str
    key: str


def upcoming(schedules: Mapping[str, Schedule], *, after: datetime, count: int = 5, namespace: str) -> list[Fire]:
    """Compute the next fire times of jobs, job by job, each in order; fewer where a schedule ends.

    Args:
        schedules: by job.
        after: aware instant; strictly later ones are given.
        count: how many of each job, > 0.
        namespace: what slot keys begin with.

    Raises:
        ConfigurationError: a schedule that fails; names the job.
    """
    return [fire for job, schedule in schedules.items() for fire in _upcoming(job, schedule, after, count, namespace)]


def fire_times(job: str, schedule: Schedule, after: datetime, count: int) -> list[datetime]:
    """Compute the next fire times of one job.

    Raises:
        ConfigurationError: the schedule fails, or answers what is not later than asked; names the job.
    """
    times: list[datetime] = []
    at = after
    while len(times) < count:
        try:
            following: datetime | None = schedule.next_after(at)
            is_later = following is None or following > at
        except Exception as error:  # a schedule may be anybody's code
            raise ConfigurationError(
                f"the schedule fails: {type(error).__name__}: {error}", job=job, argument="schedule"
            ) from error
        if following is None:
            break
        if not is_later:
            raise ConfigurationError(
                f"the schedule answered {following.isoformat()}, which is not after {at.isoformat()}",
                job=job,
                argument="schedule",
            )
        times.append(following)
        at = following
    return times


def zone_of(schedule: Any) -> tuple[str, tzinfo]:  # noqa: ANN401 - any object with the methods of a schedule
    """The zone in which a schedule thinks; UTC where it has none."""
    name = getattr(schedule, "tz", None)
    try:
        return str(name or "UTC"), ZoneInfo(name or "UTC")
    except (TypeError, ValueError, KeyError, OSError):  # anybody's attribute may be called `tz`
        return "UTC", ZoneInfo("UTC")


def _upcoming(job: str, schedule: Schedule, after: datetime, count: int, namespace: str) -> list[Fire]:
    name, zone = zone_of(schedule)
    return [
        Fire(job, at, at.astimezone(zone), name, key_at(namespace, job, at))
        for at in fire_times(job, schedule, after, count)
    ]
