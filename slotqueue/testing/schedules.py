"""Questions about the schedule of one job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slotqueue.app import SlotQueue
from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.slots import Slot, key_at
from slotqueue.words import did_you_mean, instant

_MICROSECOND = timedelta(microseconds=1)


def fires(slots: SlotQueue, job: str, start: datetime, end: datetime) -> list[datetime]:
    """List the fire times of a job in `[start, end)`, oldest first; asks no Redis.

    Args:
        slots: the application.
        job: the job's name.
        start, end: aware instants.

    Returns:
        Aware UTC instants.

    Raises:
        ConfigurationError: there is no such job, or an instant has no time zone.
    """
    schedule = job_named(slots, job).schedule
    return list(schedule.between(aware("start", start), aware("end", end)))


def job_named(slots: SlotQueue, name: str) -> Job:
    """Find a job.

    Raises:
        ConfigurationError: there is none of this name; the message says which are near.
    """
    found = slots.jobs.get(name)
    if found is None:
        raise ConfigurationError(
            f"there is no such job; {did_you_mean(name, slots.jobs) or 'the application has none'}", job=name
        )
    return found


def slot_at(namespace: str, job: Job, at: datetime | None) -> Slot:
    """Take one slot of a job: that of a fire time, or the newest one.

    Raises:
        ConfigurationError: the job does not fire then; the message says when it does.
    """
    schedule = job.schedule
    wanted = aware("at", at) if at is not None else datetime.now(UTC)
    fire_time: datetime | None = schedule.latest_at(wanted)
    if fire_time is None or (at is not None and fire_time != wanted):
        around = [instant(each) for each in (fire_time, schedule.next_after(wanted)) if each is not None]
        when = f"it fires at {' and '.join(around)}" if around else "it never fires"
        raise ConfigurationError(
            f"{instant(wanted)} is no fire time of {schedule}; {when}", job=job.name, argument="at"
        )
    before: datetime | None = schedule.latest_at(fire_time - _MICROSECOND)
    start = before if before is not None else fire_time - job.period
    return Slot(key_at(namespace, job.name, fire_time), job.name, fire_time, start)


def aware(argument: str, at: datetime) -> datetime:
    """Take an instant in UTC.

    Raises:
        ConfigurationError: it has no time zone.
    """
    if at.tzinfo is None or at.utcoffset() is None:
        raise ConfigurationError(f"{at.isoformat()} has no time zone; use datetime(..., tzinfo=UTC)", argument=argument)
    return at.astimezone(UTC)
