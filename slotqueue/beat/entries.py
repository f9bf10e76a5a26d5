"""An entry of the beat schedule as a job: what it says, in the words of `SlotQueue.add`."""

from __future__ import annotations

import copy
import hashlib
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from celery.schedules import crontab
from celery.schedules import schedule as interval

from slotqueue.beat.crontab import cron_of, zone_name
from slotqueue.beat.intervals import interval_of
from slotqueue.beat.own_rule import OwnRule
from slotqueue.beat.settings import policy_with
from slotqueue.errors import ConfigurationError
from slotqueue.policy import Policy
from slotqueue.protocols import Schedule
from slotqueue.slots import LONGEST_NAME

_OPTION = "slotqueue"
_NOT_NEEDED = ("task_id", "retry", "retry_policy", "add_to_parent", "immediate", "mandatory")
"""A message's id is its slot key, what the broker refuses is sent again by a sweep, and the rest is the default."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the beat schedule.

    Args:
        name: of the job.
        schedule: its fire times.
        task: the task's name.
        args, kwargs: as the entry says them; lazy ones are not evaluated yet.
        options: for the message, those of the task's own included.
        policy: the application's defaults and what the entry says.
    """

    name: str
    schedule: Schedule
    task: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


def entry_of(said: Any, app: Any, defaults: Policy) -> Entry:  # noqa: ANN401 - Celery is untyped
    """Read a `celery.beat.ScheduleEntry`.

    Raises:
        ConfigurationError: names the entry, the argument and what would be right.
    """
    name = job_name(said.name)
    try:
        schedule = schedule_of(said.schedule, app)
    except ConfigurationError as error:
        raise type(error)(error.problem, job=name, argument="schedule") from error
    options = {**_options_of_task(app, said.task), **copy.deepcopy(dict(said.options or {}))}
    policy = policy_with(defaults, options.pop(_OPTION, {}), argument=f"options[{_OPTION!r}]", entry=name)
    for name_of_option in _NOT_NEEDED:
        options.pop(name_of_option, None)
    options["headers"] = {**(options.get("headers") or {}), "celery_beat_task": True}
    args, kwargs = tuple(said.args or ()), dict(said.kwargs or {})
    return Entry(name, schedule, said.task, args, kwargs, options, policy)


def schedule_of(rule: Any, app: Any) -> Schedule:  # noqa: ANN401 - as above
    """Translate a schedule object of Celery's; what cannot be translated runs by its own rule.

    Raises:
        ConfigurationError: says what would be right.
    """
    if isinstance(rule, crontab):
        return cron_of(rule) or OwnRule(rule, app)
    if isinstance(rule, interval) and _is_plain_interval(rule):
        zone = zone_name(app.timezone)
        if zone is None:
            raise ConfigurationError(
                f"the time zone {app.timezone} has no IANA name; set timezone to one like 'Europe/Berlin'"
            )
        return interval_of(timedelta(seconds=rule.seconds), relative=bool(rule.relative), zone=zone)
    return OwnRule(rule, app)


def job_name(name: object) -> str:
    """The job's name for an entry: the same text where it can begin a key, else one that stands for it.

    Raises:
        ConfigurationError: a name that is another one in each process.
    """
    text = name if isinstance(name, str) else repr(name)
    if _ADDRESS.search(text):
        raise ConfigurationError(
            "its name holds an address in memory, so that each beat would have a job of its own; "
            "give it one: add_periodic_task(..., name='...')",
            job=text,
            argument="name",
        )
    printable = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    if printable == text and 0 < len(text) <= LONGEST_NAME:
        return text
    return f"{printable[:160]}~{hashlib.blake2b(text.encode(errors='replace'), digest_size=8).hexdigest()}"


def _is_plain_interval(rule: interval) -> bool:
    rules = ("is_due", "remaining_estimate", "seconds")
    return all(getattr(type(rule), name, None) is getattr(interval, name, None) for name in rules)


def _options_of_task(app: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - as above
    """What the task itself says about its messages, where beat knows it: queue, expires, priority and so on."""
    task = app.tasks.get(name)
    if task is None:
        return {}
    said = task._get_exec_options()  # noqa: SLF001 - `apply_async` asks the same
    return {name: value for name, value in said.items() if value is not None}
