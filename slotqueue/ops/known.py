"""The job of a name: the application's own, or the one that is stored in Redis; and names that are nobody's."""

from __future__ import annotations

from collections.abc import Iterable

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.ops.site import Site
from slotqueue.stored_job import StoredJob
from slotqueue.words import did_you_mean


async def job_of(site: Site, name: str) -> Job | None:
    """Find a job; code goes before Redis.

    Returns:
        None where no such job is known, or where it is stored without a worker system and no application says which.

    Raises:
        ConfigurationError: a stored job that this version cannot read.
        StoreUnavailable: ask again.
    """
    in_code = (site.jobs or {}).get(name)
    if in_code is not None:
        return in_code
    entry = await site.reader.stored_job(name)
    if entry is None:
        return None
    said = StoredJob.of(entry)
    if said.enqueuer is not None:
        return said.checked(said.enqueuer, version=entry.version, since=entry.since)
    return None if site.app is None else site.app.check_stored(said, version=entry.version, since=entry.since)


async def check_known(site: Site, *jobs: str) -> None:
    """Refuse jobs that neither a replica nor the application knows.

    Raises:
        ConfigurationError: names the first such job, and what comes close.
        StoreUnavailable: ask again.
    """
    registered = await site.reader.job_names()
    known = {*registered, *(site.jobs or {})}
    for job in jobs:
        if job not in known:
            raise unknown_job(site, registered, job)


def unknown_job(site: Site, registered: Iterable[str], job: str) -> ConfigurationError:
    """Say that nobody has made a job known, and what comes close; `registered`: what replicas have."""
    hint = did_you_mean(job, {*registered, *(site.jobs or {})}) or "no job is known there"
    problem = f"no replica has made this job known in the namespace {site.namespace!r}; {hint}"
    return ConfigurationError(problem, job=job)
