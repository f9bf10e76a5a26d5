"""The peers there are, each a module `<name>_peer` with its `PEER`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from benchmarks.peers.peer import Peer

NAMES = (
    "slotqueue",
    "slotqueue_celery",
    "arq",
    "beat",
    "redbeat",
    "saq",
    "streaq",
    "taskiq",
    "rq",
    "apscheduler",
    "procrastinate",
)


def roster(only: Sequence[str] = ()) -> dict[str, Peer]:
    """All, or those that are named, in the order of the table.

    Raises:
        ValueError: there is none of that name.
    """
    if unknown := set(only) - set(NAMES):
        raise ValueError(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    found = {}
    for name in NAMES:
        if only and name not in only:
            continue
        try:
            found[name] = importlib.import_module(f"benchmarks.peers.{name}_peer").PEER
        except ModuleNotFoundError:
            if only:
                raise
    return found
