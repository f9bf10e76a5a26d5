"""Pauses: slots that fall due meanwhile are recorded as skipped, and are not caught up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from slotqueue.errors import ConfigurationError
from slotqueue.ops.instants import check_aware
from slotqueue.ops.known import check_known
from slotqueue.ops.operator import operator
from slotqueue.ops.site import Site
from slotqueue.ops.timetable import Timetable
from slotqueue.slots import from_ms, to_ms
from slotqueue.store.orders import ALL_JOBS, Orders
from slotqueue.store.registry import Registry, read_registry
from slotqueue.store.survey import Survey
from slotqueue.words import instant

_LONGEST_WHY = 300


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in force.

    Args:
        job: its name; None for all jobs.
        until: aware UTC instant; None for ever.
        since: when it was said; None where that is not on record.
        by: who said it.
        why: in their words.
    """

    job: str | None
    until: datetime | None
    since: datetime | None = None
    by: str = ""
    why: str = ""


async def pause(
    site: Site, jobs: Sequence[str] | None, *, until: datetime | None = None, why: str = "", by: str | None = None
) -> tuple[Pause, ...]:
    """Pause jobs: what falls due is recorded as skipped, what is queued and has never begun is skipped at its begin.

    A pause that is there already is replaced. Runs that have begun go on.

    Args:
        site: where; no application is needed.
        jobs: their names; None for all, also those that come later.
        until: aware instant; None for ever.
        why: for those who ask later, one line, 300 characters at most.
        by: who; default: this user on this host.

    Raises:
        ConfigurationError: a job that nobody knows, or an instant that has passed.
        StoreUnavailable: ask again.
    """
    check_aware("until", until)
    by, names, now = by or operator(), await _names(site, jobs), await site.reader.now()
    if until is not None and to_ms(until) <= now:
        raise ConfigurationError(f"{instant(until)} has passed", argument="until")
    if len(why) > _LONGEST_WHY or (why and not why.isprintable()):
        raise ConfigurationError(f"one line of {_LONGEST_WHY} characters at most", argument="why")
    await site.store.run(Orders(site.reader.keys, by).pause(names, to_ms(until) if until else 0, why))
    wanted = {None if name == ALL_JOBS else name for name in names}
    return tuple(each for each in await pauses(site) if each.job in wanted)


async def resume(site: Site, jobs: Sequence[str] | None, *, by: str | None = None) -> tuple[str | None, ...]:
    """Let paused jobs go on with the next slot that falls due.

    Args:
        site: where; no application is needed.
        jobs: their names; None ends the pause of all jobs, and no pause of a single one.
        by: who; default: this user on this host.

    Returns:
        The jobs that go on, None for "all".

    Raises:
        ConfigurationError: a job that is not paused; none goes on then.
        StoreUnavailable: ask again.
    """
    names = await _paused_names(site, jobs)
    await site.store.run(Orders(site.reader.keys, by or operator()).pause(names, -1, ""))
    return tuple(None if name == ALL_JOBS else name for name in names)


async def pauses(site: Site) -> tuple[Pause, ...]:
    """List the pauses in force: that of all jobs first, then by name.

    Raises:
        StoreUnavailable: ask again.
    """
    found = await site.store.run(Orders(site.reader.keys, "").pauses())
    told = [
        Pause(
            None if name == ALL_JOBS else name,
            from_ms(each.until) if each.until else None,
            from_ms(each.since) if each.since else None,
            each.by,
            each.why,
        )
        for name, each in found.items()
    ]
    return tuple(sorted(told, key=lambda each: each.job or ""))


async def check_paused(site: Site, jobs: Sequence[str] | None) -> tuple[str, ...]:
    """Name the jobs that a `resume` of these would let go on: those that fire again once it is said.

    Raises:
        ConfigurationError: a job that is not paused.
    """
    names = await _paused_names(site, jobs)
    if ALL_JOBS not in names:
        return tuple(names)
    alone = {each.job for each in await pauses(site)}
    return tuple(sorted({*await site.reader.job_names(), *(site.jobs or {})} - alone))


async def next_fires(site: Site, jobs: Sequence[str], *, most: int = 3) -> dict[str, tuple[datetime, ...] | None]:
    """Tell when jobs fire next: by the application where it has them, else by the registry in Redis.

    Args:
        site: where; no application is needed.
        jobs: their names.
        most: so many fire times of each.

    Returns:
        By job aware UTC instants, fewer where its schedule ends; None where nobody can tell.

    Raises:
        StoreUnavailable: ask again.
    """
    registry = await read_registry(Survey(site.store, site.namespace))
    timetable = Timetable(registry, site.jobs)
    return {name: _fires(site, registry, timetable, name, most) for name in jobs}


def _fires(site: Site, registry: Registry, timetable: Timetable, name: str, most: int) -> tuple[datetime, ...] | None:
    in_code, entry = (site.jobs or {}).get(name), registry.jobs.get(name)
    span = timetable.current(entry) if entry else None
    version = in_code.schedule_version if in_code else span.version if span else ""
    if timetable.schedule(version) is None:
        return None
    found: list[datetime] = []
    following: int | None = registry.now
    while len(found) < most and following is not None:
        try:
            following = timetable.next_after(version, following)
        except ConfigurationError:
            return None
        found += [from_ms(following)] if following is not None else []
    return tuple(found)


async def _names(site: Site, jobs: Sequence[str] | None) -> list[str]:
    if jobs is None:
        return [ALL_JOBS]
    if not jobs:
        raise ConfigurationError("name one job or more", argument="jobs")
    await check_known(site, *jobs)
    return list(dict.fromkeys(jobs))


async def _paused_names(site: Site, jobs: Sequence[str] | None) -> list[str]:
    found = {each.job for each in await pauses(site)}
    if jobs is None:
        if None not in found:
            single = ", ".join(repr(each) for each in sorted(filter(None, found)))
            problem = "there is no pause of all jobs" + (f"; paused are {single}: name them" if single else "")
            raise ConfigurationError(problem)
        return [ALL_JOBS]
    names = await _names(site, jobs) if not set(jobs) <= found else list(dict.fromkeys(jobs))
    for name in names:
        if name not in found:
            problem = "all jobs are paused: resume them all" if None in found else "it is not paused"
            raise ConfigurationError(problem, job=name)
    return names
