"""A schedule of each hour whose last slot and whose next one are half an hour away: no test lives to see one fire."""

from __future__ import annotations

import time
from datetime import timedelta

from slotqueue import Every

_HOUR_S = 3600


def hourly() -> Every:
    """The schedule."""
    return Every(seconds=_HOUR_S, offset=timedelta(seconds=_offset_s()))


def hourly_orders() -> dict[str, int]:
    """The same, as a fleet is told of it."""
    return {"every": _HOUR_S, "offset": _offset_s()}


def _offset_s() -> int:
    return int(time.time() + _HOUR_S / 2) % _HOUR_S
