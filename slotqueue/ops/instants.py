"""Instants that are given to the functions of `slotqueue.ops`."""

from __future__ import annotations

from datetime import datetime

from slotqueue.errors import ConfigurationError


def check_aware(argument: str, at: datetime | None, *, job: str | None = None) -> None:
    """Refuse an instant without a zone; None passes.

    Raises:
        ConfigurationError: names the argument.
    """
    if at is not None and at.utcoffset() is None:
        raise ConfigurationError(f"{at} has no zone; right is an aware datetime", job=job, argument=argument)
