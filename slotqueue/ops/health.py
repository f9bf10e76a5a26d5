"""Whether a replica or a worker of a host is well, told by what it says in the registry: for exec probes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from slotqueue.ops.processes import ReplicaSeen, WorkerSeen, replicas, workers
from slotqueue.ops.site import Site
from slotqueue.words import instant


@dataclass(frozen=True, slots=True)
class Health:
    """Whether somebody is well, and why."""

    is_well: bool
    says: str


async def health(site: Site, *, host: str | None = None, of_workers: bool = False) -> Health:
    """Tell whether a host has a replica that ticks, or a guarded worker that reports.

    Args:
        site: where to look.
        host: its name; None for this one, "" for any.
        of_workers: whether workers are meant, instead of replicas.

    Raises:
        StoreUnavailable: nobody can tell; that is no fault of the process.
    """
    name = socket.gethostname() if host is None else host
    found: Sequence[ReplicaSeen | WorkerSeen] = await (workers(site) if of_workers else replicas(site))
    mine = [each for each in found if not name or each.host == name]
    what, where = "guarded worker" if of_workers else "replica", f" of {name}" if name else ""
    well = next((each for each in mine if not each.is_silent), None)
    if well is not None:
        return Health(is_well=True, says=f"{well.id} was last seen at {instant(_seen(well))}")
    if mine:
        return Health(is_well=False, says=f"{mine[0].id} is silent since {instant(_seen(mine[0]))}")
    return Health(is_well=False, says=f"no {what}{where} is in the registry of the namespace {site.namespace!r}")


def _seen(process: ReplicaSeen | WorkerSeen) -> datetime:
    return process.last_tick if isinstance(process, ReplicaSeen) else process.last_seen
