"""`check`: what would go wrong, found before it does. It starts nothing and changes nothing in Redis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from slotqueue.app import SlotQueue
from slotqueue.errors import ConfigurationError, StoreUnavailable
from slotqueue.jobs import Job
from slotqueue.ops.findings import Finding, Severity
from slotqueue.ops.fires import fire_times
from slotqueue.ops.guards import check_aims, check_guards, check_overlaps, check_queued, check_workers_alone
from slotqueue.ops.site import Site
from slotqueue.ops.stored import Stored, stored
from slotqueue.slots import from_ms
from slotqueue.store import AsyncStore
from slotqueue.store.checks import Level, check_redis
from slotqueue.words import schedule_words

_SHOWN = 3
_OPEN_LOOKED_AT = 500
"""Open slots that are read, those whose deadline comes first: enough to see that workers do not begin them."""


_SEVERITIES = {Level.ERROR: Severity.PROBLEM, Level.WARNING: Severity.WARNING, Level.NOTE: Severity.NOTE}


@dataclass(frozen=True, slots=True)
class JobChecked:
    """One job as `check` saw it.

    Args:
        name: the job's name.
        schedule: in its own words.
        task: with its worker system, "arq:send_digest".
        next_fires: the next fire times, aware UTC instants.
        is_guarded: whether a guarded worker has registered the task; None where Redis was not asked.
        worker_seen: when such a worker was last seen; None for never.
    """

    name: str
    schedule: str
    task: str
    next_fires: tuple[datetime, ...]
    is_guarded: bool | None
    worker_seen: datetime | None


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of `check`. `is_sound` where there are no problems; warnings may be there all the same."""

    jobs: tuple[JobChecked, ...]
    findings: tuple[Finding, ...]
    asked_redis: bool

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that will not work."""
        return all(finding.severity is not Severity.PROBLEM for finding in self.findings)


async def check(site: Site, *, now: datetime | None = None) -> Checked:
    """Check an application against its Redis, or where no application is known the Redis alone.

    Args:
        site: where to look.
        now: aware instant from which fire times are counted; default: the host's clock.

    Raises:
        StoreUnavailable: Redis cannot be asked.
    """
    redis_findings = await _check_redis(site.store)
    try:
        checked = await _check_namespace(site, now)
    except StoreUnavailable:
        if all(finding.severity is not Severity.PROBLEM for finding in redis_findings):
            raise
        jobs = check_jobs(site.app, now=now) if site.app is not None else Checked((), (), asked_redis=True)
        checked = replace(jobs, asked_redis=True)  # what was found out about Redis says why it does not answer
    return replace(checked, findings=(*checked.findings, *redis_findings))


async def _check_namespace(site: Site, now: datetime | None) -> Checked:
    """Check what Redis holds, and an application against it."""
    reader = site.reader
    tasks = await reader.tasks()
    at = await reader.now()
    queued = check_queued(await reader.slots(await reader.open_keys(_OPEN_LOOKED_AT)), at)
    in_redis = await stored(site)
    troubled = [
        Finding(Severity.WARNING, f"stored job {each.name!r}", each.problem) for each in in_redis if each.problem
    ]
    if site.app is None:
        return Checked((), (*check_workers_alone(tasks, at), *queued, *troubled), asked_redis=True)
    owners = _check_owner(site.app, await reader.owner())
    jobs, findings = _check_jobs(site.app, now or datetime.now(UTC), tasks)
    mine = [*site.app.jobs.values(), *_usable(site.app, in_redis)]
    workers = await reader.workers()
    guards = [*check_guards(mine, tasks, at, workers), *check_overlaps(mine, tasks)]
    aims = check_aims(mine, site.app.enqueuers, workers)
    return Checked(tuple(jobs), (*owners, *findings, *guards, *aims, *queued, *troubled), asked_redis=True)


def _usable(app: SlotQueue, found: Iterable[Stored]) -> list[Job]:
    return [app.check_stored(each.job) for each in found if each.job is not None and not each.problem]


def check_jobs(app: SlotQueue, *, now: datetime | None = None) -> Checked:
    """Check what can be checked without Redis: schedules and arguments."""
    jobs, findings = _check_jobs(app, now or datetime.now(UTC), None)
    return Checked(tuple(jobs), tuple(findings), asked_redis=False)


def _check_jobs(
    app: SlotQueue, now: datetime, tasks: Mapping[str, int] | None
) -> tuple[list[JobChecked], list[Finding]]:
    checked: list[JobChecked] = []
    findings: list[Finding] = []
    if not app.jobs:
        findings.append(Finding(Severity.WARNING, "application", "it has no jobs; add one with add(...)"))
    for job in app.jobs.values():
        about = f"job {job.name!r}"
        fires: list[datetime] = []
        try:
            fires = fire_times(job.name, job.schedule, now, _SHOWN)
            app.enqueuers[job.enqueuer].check(job)
        except ConfigurationError as error:
            findings.append(Finding(Severity.PROBLEM, about, _without_job(error)))
        else:
            if not fires:
                findings.append(Finding(Severity.WARNING, about, f"its schedule ({job.schedule}) never fires again"))
        seen = tasks.get(job.task_name) if tasks is not None else None
        is_guarded = None if tasks is None else seen is not None
        at = from_ms(seen) if seen is not None else None
        checked.append(JobChecked(job.name, schedule_words(job.schedule), job.task_name, tuple(fires), is_guarded, at))
    return checked, findings


def _without_job(error: ConfigurationError) -> str:
    return f"{error.argument}: {error.problem}" if error.argument else error.problem


def _check_owner(app: SlotQueue, owner: str | None) -> list[Finding]:
    if app.app is None or owner in {None, app.app}:
        return []
    text = (
        f"{app.namespace!r} belongs to the app {owner!r}, and this is {app.app!r}, which is refused there: "
        "give it a namespace of its own"
    )
    return [Finding(Severity.PROBLEM, "namespace", text)]


async def _check_redis(store: AsyncStore) -> list[Finding]:
    health = await check_redis(store)
    return [Finding(_SEVERITIES[each.level], "redis", f"{each.what}; {each.advice}") for each in health.findings]
