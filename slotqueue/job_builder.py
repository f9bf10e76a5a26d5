"""From what a caller says to a job: every wrong word is refused while building, and names its job and argument."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

from slotqueue.errors import ConfigurationError, InvalidSchedule, InvalidSlotKey
from slotqueue.jobs import Job
from slotqueue.policy import Policy
from slotqueue.protocols import Schedule
from slotqueue.slots import check_name

_REFERENCE = datetime(2024, 1, 1, tzinfo=UTC)


def build_job(  # noqa: PLR0913 - a job has as many sides
    name: str,
    schedule: Schedule,
    policy: Policy,
    *,
    enqueuer: str,
    task: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    options: Mapping[str, Any] | None = None,
    stored: int = 0,
    since: int = 0,
) -> Job:
    """Check what was said, and make a job of it: see `SlotQueue.add`; for `stored` and `since` see `Job`.

    Raises:
        ConfigurationError: names the job, the argument and what would be right.
    """
    try:
        check_name(name)
    except InvalidSlotKey as error:
        raise ConfigurationError(str(error), argument="name") from None
    _check_schedule(name, schedule)
    _check_call(name, task=task, queue=queue, args=args, kwargs=kwargs, options=options)
    return Job(
        name=name,
        schedule=schedule,
        task=task or name,
        args=tuple(args),
        kwargs=dict(kwargs or {}),
        queue=queue,
        options=dict(options or {}),
        enqueuer=enqueuer,
        policy=policy,
        period=_period_of(name, schedule),
        stored=stored,
        since=since,
    )


def _check_schedule(job: str, schedule: object) -> None:
    is_schedule = all(callable(getattr(schedule, verb, None)) for verb in ("between", "next_after", "latest_at"))
    if isinstance(schedule, type) or not is_schedule:
        raise ConfigurationError(
            f"{schedule!r} is no schedule; use Cron('0 3 * * *') or Every(minutes=5)", job=job, argument="schedule"
        )


def _check_call(job: str, *, args: object, kwargs: object, options: object, **names: object) -> None:
    for argument, value in names.items():
        if value is not None and (not isinstance(value, str) or not value):
            advice = "say the name by which the workers know the function" if argument == "task" else "say its name"
            raise ConfigurationError(f"{value!r} is no name; {advice}", job=job, argument=argument)
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise ConfigurationError(f"{args!r} is no list or tuple of arguments", job=job, argument="args")
    for argument, value in (("kwargs", kwargs), ("options", options)):
        if value is not None and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
            raise ConfigurationError(f"{value!r} is no mapping from names to values", job=job, argument=argument)


def _typical_gap(schedule: Schedule) -> timedelta | None:
    """The longest of the first gaps after a fixed instant: the same on every replica, whenever it starts."""
    fires = []
    at: datetime | None = _REFERENCE
    for _ in range(4):
        at = schedule.next_after(at) if at is not None else None
        if at is not None:
            fires.append(at)
    gaps = [later - earlier for earlier, later in pairwise(fires)]
    return max(gaps) if gaps else None


_cached_gap = lru_cache(maxsize=4096)(_typical_gap)


def _period_of(name: str, schedule: Schedule) -> timedelta:
    try:
        gap = _cached_gap(schedule) if isinstance(schedule, Hashable) else _typical_gap(schedule)
    except InvalidSchedule as error:
        raise InvalidSchedule(error.problem, job=name, argument="schedule") from error
    if gap is not None and gap <= timedelta(0):
        raise InvalidSchedule("its fire times do not grow", job=name, argument="schedule")
    return gap or timedelta(days=1)
