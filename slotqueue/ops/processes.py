"""Which replicas and guarded workers there are, as their registries know them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slotqueue.ops.silence import is_silent
from slotqueue.ops.site import Site
from slotqueue.slots import from_ms
from slotqueue.store.readings import ProcessSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A process in a registry, which it leaves when it stops in order; one that vanished stays for a day."""

    id: str
    host: str
    pid: int
    version: str
    is_silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSeen(_Seen):
    """One replica.

    Args:
        id: as in records and logs.
        host, pid, version: of its process; version of slotqueue.
        is_silent: no sign of life for a minute: it was killed, it hangs, or it does not reach Redis.
        up_since: aware UTC instant, None where it does not say.
        last_tick: when it last gave a sign of life, which its ticks do every 10 s.
        clock_offset: how many seconds its host's clock is ahead of Redis's.
        jobs: how many it knows.
    """

    up_since: datetime | None
    last_tick: datetime
    clock_offset: float
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen(_Seen):
    """One guarded worker.

    Args:
        id: as in records and logs.
        host, pid, version: of its process; version of slotqueue.
        is_silent: no report for a minute: it was killed, it hangs, or it does not reach Redis.
        system: "arq" or "celery"; "" where it does not say.
        queue: where it listens, "" where it does not say.
        tasks: the guarded ones, with their worker system.
        last_seen: aware UTC instant; workers report every 20 s.
    """

    system: str
    queue: str
    tasks: tuple[str, ...]
    last_seen: datetime


async def replicas(site: Site) -> list[ReplicaSeen]:
    """List the replicas, the one that ticked last first.

    Raises:
        StoreUnavailable: ask again.
    """
    reader = site.reader
    found, now = await reader.replicas(), await reader.now()
    return [
        ReplicaSeen(
            **_process(each, now),
            up_since=from_ms(since) if (since := _number(each, "up_since")) else None,
            last_tick=from_ms(each.seen),
            clock_offset=_number(each, "clock_offset_ms") / 1000,
            jobs=round(_number(each, "jobs")),
        )
        for each in found
    ]


async def workers(site: Site) -> list[WorkerSeen]:
    """List the guarded workers, the one seen last first.

    Raises:
        StoreUnavailable: ask again.
    """
    reader = site.reader
    found, now = await reader.workers(), await reader.now()
    return [
        WorkerSeen(
            **_process(each, now),
            system=_text(each, "worker"),
            queue=_text(each, "queue"),
            tasks=tuple(map(str, each.about.get("tasks", []))) if isinstance(each.about.get("tasks"), list) else (),
            last_seen=from_ms(each.seen),
        )
        for each in found
    ]


def _process(seen: ProcessSeen, now: int) -> dict[str, Any]:
    """What is told of either."""
    return {
        "id": seen.id,
        "host": _text(seen, "host"),
        "pid": round(_number(seen, "pid")),
        "version": _text(seen, "slotqueue"),
        "is_silent": is_silent(seen.seen, now),
    }


def _text(process: ProcessSeen, name: str) -> str:
    value = process.about.get(name, "")
    return value if isinstance(value, str) else ""


def _number(process: ProcessSeen, name: str) -> float:
    value = process.about.get(name, 0)
    return value if isinstance(value, int | float) else 0
