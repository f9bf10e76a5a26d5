"""Forgetting a job that no replica knows any more."""

from __future__ import annotations

from dataclasses import dataclass

from slotqueue.errors import ConfigurationError
from slotqueue.ops.known import check_known
from slotqueue.ops.operator import operator
from slotqueue.ops.site import Site, job_of_key
from slotqueue.slots import check_name
from slotqueue.store.orders import Orders
from slotqueue.words import duration

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A job that was forgotten.

    Args:
        job: its name.
        missed: the open slots that were given up with it.
        left: those that a worker may be running; they end by themselves.
        by: who wanted it.
    """

    job: str
    missed: tuple[str, ...]
    left: tuple[str, ...]
    by: str


async def forget(site: Site, job: str, *, by: str | None = None) -> Forgotten:
    """Drop a job that was removed from the code: from the registries, with its gaps and its pause.

    Its open slots end as `missed`, but for those that a worker may be running. What is on record of it stays until its
    time is over. A job that comes back owes nothing from before.

    Args:
        site: where; no application is needed.
        job: its name.
        by: who; default: this user on this host.

    Raises:
        ConfigurationError: it is no name, nobody knows the job, or a replica said within 6 minutes that it knows it.
        StoreUnavailable: ask again.
    """
    check_name(job)  # the registry keeps what it knows of the whole fleet under ""
    by = by or operator()
    orders = Orders(site.reader.keys, by)
    if job in (site.jobs or {}):
        raise ConfigurationError("the application has it: remove it there first", job=job)
    answer = await site.store.run(orders.forget(job))
    if answer.word == "missing":
        await check_known(site, job)
    if answer.word == "known":
        ago = duration(float(answer.detail))
        raise ConfigurationError(
            f"a replica said {ago} ago that it knows it: remove it from the code, or stop the replica, and wait for "
            "6 min (a replica that stops in order still counts as long)",
            job=job,
        )
    keys = await _open_keys(site, job)
    answers = await site.store.run(orders.abandon(keys)) if keys else []
    ended = tuple(key for key, each in zip(keys, answers, strict=True) if each.word == "missed")
    left = tuple(key for key, each in zip(keys, answers, strict=True) if each.word in ("running", "postponed"))
    return Forgotten(job, ended, left, by)


async def _open_keys(site: Site, job: str) -> list[str]:
    found: list[str] = []
    at, verbs = 0, site.store.verbs
    while some := await site.store.run(verbs.open_keys(at, _PAGE)):
        found += [key for key in some if job_of_key(key) == job]
        at += _PAGE
    return found
