"""The job of a name: the application's own, or the one that is stored in Redis."""

from __future__ import annotations

from slotqueue.jobs import Job
from slotqueue.ops.site import Site
from slotqueue.stored_job import StoredJob


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
