"""Which replicas and guarded workers there are, as their registries know them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slotqueue.ops.site import Site
from slotqueue.slots import from_ms
from slotqueue.store.readings import ProcessSeen

REPLICA_SILENT_MS = 60_000
"""A replica gives a sign of life every 10 s, from its tick."""
WORKER_SILENT_MS = 45_000
"""A guarded worker says every 20 s that it is there: two signs are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSeen:
    """One replica. It leaves the registry when it stops in order; one that vanished stays for a day.

    Args:
        id: as in records and logs.
        host, pid, version: of its process; version of slotqueue.
        up_since: aware UTC instant, None where it does not say.
        last_tick: when it last gave a sign of life, which its ticks do every 10 s.
        is_silent: no sign for a minute: it was killed, it hangs, or it does not reach Redis.
        clock_offset: how many seconds its host's clock is ahead of Redis's.
        jobs: how many it knows.
    """

    id: str
    host: str
    pid: int
    version: str
    up_since: datetime | None
    last_tick: datetime
    is_silent: bool
    clock_offset: float
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """One guarded worker. It leaves the registry when it stops in order; one that vanished stays for a day.

    Args:
        id: as in records and logs.
        host, pid, version: of its process; version of slotqueue.
        system: "arq" or "celery"; "" where it does not say.
        queue: where it listens, "" where it does not say.
        tasks: the guarded ones, with their worker system.
        last_seen: aware UTC instant; workers report every 20 s.
        is_silent: no report for 45 s: it was killed, it hangs, or it does not reach Redis.
    """

    id: str
    host: str
    pid: int
    version: str
    system: str
    queue: str
    tasks: tuple[str, ...]
    last_seen: datetime
    is_silent: bool


async def replicas(site: Site) -> list[ReplicaSeen]:
    """List the replicas, the one that ticked last first.

    Raises:
        StoreUnavailable: ask again.
    """
    reader = site.reader
    found, now = await reader.replicas(), await reader.now()
    return [
        ReplicaSeen(
            id=each.id,
            host=_text(each, "host"),
            pid=round(_number(each, "pid")),
            version=_text(each, "slotqueue"),
            up_since=from_ms(since) if (since := _number(each, "up_since")) else None,
            last_tick=from_ms(each.seen),
            is_silent=now - each.seen > REPLICA_SILENT_MS,
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
            id=each.id,
            host=_text(each, "host"),
            pid=round(_number(each, "pid")),
            version=_text(each, "slotqueue"),
            system=_text(each, "worker"),
            queue=_text(each, "queue"),
            tasks=tuple(map(str, each.about.get("tasks", []))) if isinstance(each.about.get("tasks"), list) else (),
            last_seen=from_ms(each.seen),
            is_silent=now - each.seen > WORKER_SILENT_MS,
        )
        for each in found
    ]


def _text(process: ProcessSeen, name: str) -> str:
    value = process.about.get(name, "")
    return value if isinstance(value, str) else ""


def _number(process: ProcessSeen, name: str) -> float:
    value = process.about.get(name, 0)
    return value if isinstance(value, int | float) else 0
