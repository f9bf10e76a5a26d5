"""Waiting for what will come, with a limit: in an event loop, and in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tests.load import PATIENCE


async def eventually(
    what: Callable[[], Any], *, within: float = 40.0, pause: float = 0.02, why: str | Callable[[], str] = ""
) -> Any:
    """Wait until `what` returns, or awaits to, something true, and return that.

    Args:
        what: asked every `pause` seconds.
        within: seconds until it is too late; more where the machine is kept busy on purpose.
        pause: seconds.
        why: what is waited for, or what tells how things stand, for who reads of the failure.
    """
    deadline = time.monotonic() + within * PATIENCE
    while True:
        found = what()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, _too_late(within, why, what)
        await asyncio.sleep(pause)


def wait_until(
    what: Callable[[], Any], *, within: float = 50.0, pause: float = 0.02, why: str | Callable[[], str] = ""
) -> Any:
    """Do the same as `eventually` in a thread of its own: it blocks."""
    deadline = time.monotonic() + within * PATIENCE
    while not (found := what()):
        assert time.monotonic() < deadline, _too_late(within, why, what)
        time.sleep(pause)
    return found


def _too_late(within: float, why: str | Callable[[], str], what: object) -> str:
    return f"not within {within} s: {why() if callable(why) else why or what}"
