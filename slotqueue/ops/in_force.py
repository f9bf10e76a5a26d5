"""Which schedules there are: the application's, those of jobs stored in Redis, and what replicas have made known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from slotqueue.ops.site import Site
from slotqueue.ops.stored import is_of_code, stored
from slotqueue.ops.timetable import Timetable
from slotqueue.protocols import Schedule
from slotqueue.store.registry import read_registry
from slotqueue.store.survey import Survey


class InForce(NamedTuple):
    """The schedules in force.

    Args:
        schedules: by job; those of the code first, then by name.
        untold: jobs whose schedules only their application can tell.
    """

    schedules: Mapping[str, Schedule]
    untold: tuple[str, ...] = ()


async def in_force(site: Site) -> InForce:
    """Tell which schedules there are. Code goes before a stored job of its name.

    With an application these are its own and the stored ones that it can run. Without one, also those that the
    replicas of the namespace have made known.

    Raises:
        StoreUnavailable: ask again.
    """
    here = {name: job.schedule for name, job in (site.jobs or {}).items()}
    found: dict[str, Schedule] = {
        each.name: each.job.schedule for each in await stored(site) if each.job is not None and not each.problem
    }
    if site.app is not None:
        return InForce({**here, **{name: found[name] for name in found if name not in here}})
    registry, entries = await read_registry(Survey(site.store, site.namespace)), await site.reader.stored()
    timetable, by_name, untold = Timetable(registry, None), {entry.job: entry for entry in entries}, []
    for name, entry in registry.jobs.items():
        span = timetable.current(entry)
        if span is None or (name in found and not is_of_code(entry, by_name.get(name), registry.now)):
            continue
        if (schedule := timetable.schedule(span.version)) is not None:
            found[name] = schedule
        else:
            found.pop(name, None)
            untold.append(name)
    return InForce({name: found[name] for name in sorted(found)}, tuple(sorted(untold)))
