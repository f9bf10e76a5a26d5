"""What a Celery message carries beside Celery's own: headers that every tool shows and every retry copies."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from kombu.serialization import dumps

from slotqueue.enqueuers.celery.options import check_options
from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.messages import Slip
from slotqueue.slots import from_ms

SLIP = "slotqueue"
"""The slip as JSON."""
FIRE_TIME = "slotqueue_fire_time"
"""For people: Flower and logs show it."""
FENCE = "slotqueue_fence"
"""Of the run that sent this message as its retry: written before the function runs, copied by Celery."""
TOKEN = "slotqueue_token"  # noqa: S105 - names a delivery, keeps no secret
"""Of this delivery: written by the worker's parent process, never sent."""
BACK = "slotqueue_back"
"""On a message that a guard handed back: the token of a begin that was not answered, or this."""
NO_TOKEN = "-"  # noqa: S105 - as above


def headers_of(slip: Slip) -> dict[str, str]:
    """The headers of a slot's first message."""
    return {SLIP: slip.to_json(), FIRE_TIME: from_ms(slip.fire).isoformat()}


def slip_in(headers: Mapping[str, Any] | None) -> Slip | None:
    """Read the slip; None where the message is no slot.

    Raises:
        ValueError: marked as a slot, but the slip cannot be read.
    """
    text = (headers or {}).get(SLIP)
    if text is None:
        return None
    try:
        return Slip.from_json(text)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"its slip cannot be read, it may be from a newer version: {error}") from error


def readable_slip_in(headers: Mapping[str, Any] | None) -> Slip | None:
    """Read the slip; None also where it cannot be read."""
    try:
        return slip_in(headers)
    except ValueError:
        return None


def token_for(headers: MutableMapping[str, Any], make: Any, *, is_redelivered: bool) -> str:  # noqa: ANN401
    """The token of a delivery, also left in its headers.

    A begin that was never answered may have been heard: the message that was handed back then carries its token, and
    finds its own lease. Not so when the broker delivers that message a second time: two runs must not share a token.
    """
    token: str | None = headers.get(TOKEN)
    if token is None:
        earlier = headers.get(BACK)
        token = earlier if earlier and earlier != NO_TOKEN and not is_redelivered else make()
        headers[TOKEN] = token
    return token


def check_message(job: Job, default_serializer: str) -> None:
    """Refuse a job whose options Celery does not know or whose arguments its serializer refuses.

    Raises:
        ConfigurationError: names the job and the argument.
    """
    check_options(job)
    serializer = job.options.get("serializer") or default_serializer
    parts = [(f"args[{i}]", value) for i, value in enumerate(job.args)]
    parts += [(f"kwargs[{name!r}]", {name: value}) for name, value in job.kwargs.items()]
    parts.append(("options['headers']", dict(job.options.get("headers") or {})))
    for argument, value in parts:
        try:
            dumps(value, serializer=serializer)
        except Exception as error:  # serializers raise what they like
            raise ConfigurationError(
                f"Celery's serializer {serializer!r} refuses it ({type(error).__name__}: {error}); use values that it "
                "can carry",
                job=job.name,
                argument=argument,
            ) from error
