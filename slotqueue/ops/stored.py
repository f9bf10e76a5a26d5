"""Jobs stored in Redis, beside those in code: put, removed and listed while replicas run.

Every replica works by a change within two seconds. Who changes a job says which version they have seen, and is refused
where somebody else was faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slotqueue.answers import StoredEntry
from slotqueue.errors import ConfigurationError, InvalidSlotKey, VersionConflict
from slotqueue.ops.operator import operator
from slotqueue.ops.site import Site
from slotqueue.policy import Policy
from slotqueue.schedule_text import parse_schedule
from slotqueue.schedules import Cron, Every
from slotqueue.slots import check_name, from_ms
from slotqueue.store.registry import JobEntry, read_entry
from slotqueue.stored_job import StoredJob
from slotqueue.words import did_you_mean

_NEW_MS = 10_000
_IN_CODE = "by the registry, replicas have a job of this name in their code, which goes before it"
_ANY_KIND = "any"
"""Stands for the worker system in checks, where no application says which."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored job.

    Args:
        name: the job's name.
        version: grows with every change of it.
        stored_at: aware UTC instant.
        job: what was said; None where this version of slotqueue cannot read it.
        problem: why it cannot be read, or is not what replicas work by; "" for nothing.
    """

    name: str
    version: int
    stored_at: datetime
    job: StoredJob | None
    problem: str = ""


async def put(  # noqa: PLR0913 - a job has as many sides
    site: Site,
    name: str,
    schedule: Cron | Every | str,
    *,
    task: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    options: Mapping[str, Any] | None = None,
    enqueuer: str | None = None,
    policy: Policy | None = None,
    version: int | None = None,
    by: str | None = None,
    **fields_of_policy: Any,  # noqa: ANN401 - each field has a type of its own, checked when it is merged
) -> Stored:
    """Store a job, or another version of it; every replica works by it within two seconds.

    Args:
        site: where; with an application its defaults are merged in, and its enqueuer checks the job.
        name: as in `SlotQueue.add`.
        schedule: `Cron`, `Every`, or the text of one: see `slotqueue.schedule_text.parse_schedule`.
        task, queue: as in `SlotQueue.add`.
        args, kwargs, options: the same, of JSON values only.
        enqueuer: the kind, such as "arq"; None for each application's own.
        policy: in place of the application's defaults.
        version: store it only over this version; 0 only if none is stored; None over whatever is there.
        by: who does it, for the record. Default: the user and the host.
        **fields_of_policy: single fields of `Policy`, over `policy` or the defaults.

    Raises:
        ConfigurationError: names the job, the argument and what would be right; nothing is stored.
        VersionConflict: another version is stored by now.
        StoreUnavailable: ask again.
    """
    defaults = site.app.defaults if site.app is not None else Policy()
    said = StoredJob(
        name=name,
        schedule=parse_schedule(schedule) if isinstance(schedule, str) else schedule,
        task=task,
        args=args,
        kwargs=kwargs or {},
        queue=queue,
        options=options or {},
        enqueuer=enqueuer,
        policy=(policy or defaults).with_fields(name, fields_of_policy),
        by=by if by is not None else operator(),
    )
    job = said.checked(enqueuer or _ANY_KIND) if site.app is None else site.app.check_stored(said)
    expected = _whole(name, version)
    is_in_code = await in_code(site, name)
    written = await site.store.run(site.store.verbs.put(name, said.to_json(), job.schedule_version, expected=expected))
    if not written.is_done:
        raise _conflict(name, version, written.version)
    problem = _IN_CODE if is_in_code else ""
    return _with_problem(site, Stored(name, written.version, from_ms(written.version), said, problem))


async def in_code(site: Site, name: str) -> bool:
    """Whether the application, or by the registry a replica, has a job of this name in code, which goes before Redis.

    A job that was put within the last seconds counts as stored: the registry may not show it yet.

    Raises:
        StoreUnavailable: ask again.
    """
    if name in (site.jobs or {}):
        return True
    stored_job = await site.reader.stored_job(name)
    entry, _ = await read_entry(site.reader, name)
    return entry is not None and is_of_code(entry, stored_job, await site.reader.now())


def is_of_code(entry: JobEntry, stored_job: StoredEntry | None, now: int) -> bool:
    """Whether a schedule is in force, by the registry, that is not the stored job's; see `in_code`."""
    if stored_job and now - stored_job.version < _NEW_MS:
        return False
    of_stored = (stored_job.raw.split(" ")[2:3], stored_job.since) if stored_job else None
    return any(each.until is None and ([each.version], each.since) != of_stored for each in entry.spans)


async def remove(site: Site, name: str, *, version: int | None = None) -> int:
    """Remove a stored job. From then on no slot of it is claimed, begun or enqueued again; what runs, runs to its end.

    Args:
        site: where.
        name: of a stored job; one in code is removed there.
        version: remove only this version; None whatever is there.

    Returns:
        The version at which it was removed.

    Raises:
        ConfigurationError: no such job is stored.
        VersionConflict: another version is stored by now.
        StoreUnavailable: ask again.
    """
    try:
        check_name(name)
    except InvalidSlotKey as error:
        raise ConfigurationError(str(error), argument="name") from None
    written = await site.store.run(site.store.verbs.remove(name, expected=_whole(name, version)))
    if written.is_done:
        return written.version
    if written.version:
        raise _conflict(name, version, written.version)
    if site.app is not None and name in site.app.jobs:
        raise ConfigurationError("it is a job in code, and none of its name is stored; take it out there", job=name)
    names = [entry.job for entry in await site.reader.stored()]
    hint = did_you_mean(name, names) or "no job is stored there"
    raise ConfigurationError(f"no such job is stored in the namespace {site.namespace!r}; {hint}", job=name)


async def stored(site: Site) -> tuple[Stored, ...]:
    """List the stored jobs, by name; those that this version cannot read as well.

    Raises:
        StoreUnavailable: ask again.
    """
    found = [_stored(site, entry) for entry in await site.reader.stored()]
    return tuple(sorted(found, key=lambda each: each.name))


def _stored(site: Site, entry: StoredEntry) -> Stored:
    job, problem = None, ""
    try:
        job = StoredJob.of(entry)
        if site.app is not None:
            site.app.check_stored(job)
    except Exception as error:  # noqa: BLE001 - it may hold anything, and the others are to be listed
        problem = str(error)
    return _with_problem(site, Stored(entry.job, entry.version, from_ms(entry.version), job, problem))


def _with_problem(site: Site, found: Stored) -> Stored:
    if site.app is None or found.name not in site.app.jobs:
        return found
    problem = "the application has a job of this name in its code, which goes before it"
    return Stored(found.name, found.version, found.stored_at, found.job, problem)


def _whole(job: str, version: object) -> int | None:
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise ConfigurationError(
            f"{version!r} is no version; right is a whole number, 0 for none", job=job, argument="version"
        )
    return version


def _conflict(job: str, wanted: int | None, found: int) -> VersionConflict:
    if not found:
        problem = f"no job of this name is stored, so its version is not {wanted}"
    elif not wanted:
        problem = f"it is stored already, as version {found}"
    else:
        problem = f"it is stored as version {found} by now, not {wanted}: somebody changed it; look at it again"
    return VersionConflict(problem, job=job, argument="version", version=found)
