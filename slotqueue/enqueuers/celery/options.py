"""The options of a job that Celery knows, as `send_task` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.messages import Message
from slotqueue.slots import from_ms

_PASSED_ON = (
    "queue",
    "exchange",
    "routing_key",
    "priority",
    "serializer",
    "compression",
    "delivery_mode",
    "time_limit",
    "soft_time_limit",
    "shadow",
    "argsrepr",
    "kwargsrepr",
    "link",
    "link_error",
)
KNOWN = (*_PASSED_ON, "expires", "headers")
_REFUSED = {
    "task_id": "it is the slot key",
    "countdown": "a slot is sent when it is due; use jitter or another schedule",
    "eta": "a slot is sent when it is due; use jitter or another schedule",
    "ignore_result": "it would override the task's own setting; set it on the task",
    "retry": "whatever the broker refuses is sent again by the next sweep",
    "retry_policy": "whatever the broker refuses is sent again by the next sweep",
}


def check_options(job: Job) -> None:
    """Refuse options that Celery or slotqueue cannot honour.

    Raises:
        ConfigurationError: names the job and the option.
    """
    for name, value in job.options.items():
        problem = _problem(name, value)
        if problem:
            raise ConfigurationError(problem, job=job.name, argument=f"options[{name!r}]")


def sending_options(message: Message) -> dict[str, Any]:
    """The options of one message; `expires` is an instant, so that it does not depend on when it is sent."""
    options: dict[str, Any] = {}
    if not message.args:
        options["argsrepr"] = "()"  # Celery's own way there costs a tenth of a message
    if not message.kwargs:
        options["kwargsrepr"] = "{}"
    options |= {name: message.options[name] for name in _PASSED_ON if name in message.options}
    if message.queue is not None:
        options["queue"] = message.queue
    expires = message.options.get("expires")
    if expires is not None:
        options["expires"] = from_ms(message.slip.fire) + _span(expires)
    return options


def _problem(name: str, value: object) -> str | None:
    if name in _REFUSED:
        return f"not here: {_REFUSED[name]}"
    if name not in KNOWN:
        return f"there is no such option; known are {', '.join(KNOWN)}"
    check = {"expires": _problem_of_expires, "headers": _problem_of_headers, "priority": _problem_of_priority}.get(name)
    return None if check is None or value is None else check(value)


def _problem_of_expires(value: object) -> str | None:
    if isinstance(value, datetime):
        return "an instant would be over for all later slots; give seconds or a timedelta after the fire time"
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta) or _span(value) <= timedelta(0):
        return f"{value!r} is neither a timedelta nor seconds after the fire time, more than 0"
    return None


def _problem_of_headers(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return f"{value!r} is no mapping"
    taken = [key for key in value if str(key).startswith("slotqueue")]
    return f"the header {taken[0]!r} is slotqueue's own" if taken else None


def _problem_of_priority(value: object) -> str | None:
    return f"{value!r} is no whole number" if isinstance(value, bool) or not isinstance(value, int) else None


def _span(value: timedelta | float) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=value)
