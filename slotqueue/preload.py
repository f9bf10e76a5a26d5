"""gunicorn's `--preload`: its master imports the application, and serves none of it; its workers are forked later.

What an import starts there would tick in the master, with code that nothing serves, and in no worker. So it is kept,
and started in each worker as soon as that is forked. A child that a worker forks for ends of its own is left alone.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from types import FrameType

_ARBITER = "gunicorn.arbiter"
_kept: list[Callable[[], object]] = []


def is_preloading() -> bool:
    """Whether gunicorn's master imports the application now, before it forks."""
    frame = inspect.currentframe()
    while frame is not None:
        if _is_arbiters(frame, "setup"):
            return True
        frame = frame.f_back
    return False


def start_in_workers(start: Callable[[], object]) -> None:
    """Call this in each worker that gunicorn's master forks from now on."""
    if not _kept:
        os.register_at_fork(after_in_child=_start_all)
    if start not in _kept:
        _kept.append(start)


def _start_all() -> None:
    """Called by Python in every forked child, on top of what called `os.fork`."""
    here = inspect.currentframe()
    forking = here.f_back if here is not None else None
    if forking is not None and _is_arbiters(forking, "spawn_worker"):
        for start in _kept:
            start()


def _is_arbiters(frame: FrameType, name: str) -> bool:
    return frame.f_code.co_name == name and frame.f_globals.get("__name__") == _ARBITER
