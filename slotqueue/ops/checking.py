"""`check`: what would go wrong, found before it does. It starts nothing and changes nothing in Redis."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from slotqueue.app import SlotQueue
from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.ops.fires import fire_times
from slotqueue.ops.site import Site
from slotqueue.ops.words import did_you_mean, duration, instant
from slotqueue.slots import from_ms
from slotqueue.store import AsyncStore
from slotqueue.store.checks import Level, check_redis

_SILENT_MS = 10 * 60_000
"""A guarded worker says every minute that it is there."""
_SHOWN = 3


class Severity(StrEnum):
    """How bad a finding is."""

    PROBLEM = "problem"
    """Something will not work."""
    WARNING = "warning"
    """It works, and promises less than it could."""
    NOTE = "note"
    """Good to know."""


_SEVERITIES = {Level.ERROR: Severity.PROBLEM, Level.WARNING: Severity.WARNING, Level.NOTE: Severity.NOTE}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that `check` found.

    Args:
        severity: how bad it is.
        about: "job 'rollup'", "redis", "workers", "application".
        text: what is wrong and what would be right.
    """

    severity: Severity
    about: str
    text: str


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
    reader = site.reader
    redis_findings = await _check_redis(site.store)
    tasks = await reader.tasks()
    at = await reader.now()
    if site.app is None:
        return Checked((), (*redis_findings, *_workers_alone(tasks, at)), asked_redis=True)
    jobs, findings = _check_jobs(site.app, now or datetime.now(UTC), tasks)
    guards = _check_guards(list(site.app.jobs.values()), tasks, at)
    return Checked(tuple(jobs), (*findings, *guards, *redis_findings), asked_redis=True)


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
            fires = fire_times(job, now, _SHOWN)
            app.enqueuers[job.enqueuer].check(job)
        except ConfigurationError as error:
            findings.append(Finding(Severity.PROBLEM, about, _without_job(error)))
        else:
            if not fires:
                findings.append(Finding(Severity.WARNING, about, f"its schedule ({job.schedule}) never fires again"))
        seen = tasks.get(job.task_name) if tasks is not None else None
        is_guarded = None if tasks is None else seen is not None
        at = from_ms(seen) if seen is not None else None
        checked.append(JobChecked(job.name, str(job.schedule), job.task_name, tuple(fires), is_guarded, at))
    return checked, findings


def _check_guards(jobs: Collection[Job], tasks: Mapping[str, int], now: int) -> list[Finding]:
    """Tasks that no guarded worker has: a slip of the pen where such workers are known, unguarded workers otherwise."""
    findings = []
    for kind in dict.fromkeys(job.enqueuer for job in jobs):
        mine = [job for job in jobs if job.enqueuer == kind]
        known = [task.partition(":")[2] for task in tasks if task.startswith(f"{kind}:")]
        if known:
            findings += [_check_guard(job, known, tasks.get(job.task_name), now) for job in mine]
        else:
            findings.append(_unguarded(kind, mine))
    return [finding for finding in findings if finding is not None]


def _check_guard(job: Job, known: Collection[str], seen: int | None, now: int) -> Finding | None:
    about = f"job {job.name!r}"
    if seen is None:
        hint = did_you_mean(job.task, known)
        text = f"no guarded {job.enqueuer} worker has the task {job.task!r}: nobody would report on its slots; {hint}"
        return Finding(Severity.PROBLEM, about, text)
    if now - seen > _SILENT_MS:
        text = (
            f"the last guarded {job.enqueuer} worker with the task {job.task!r} was seen {duration(now - seen)} ago, "
            f"at {instant(seen)}: are its workers up?"
        )
        return Finding(Severity.WARNING, about, text)
    return None


def _unguarded(kind: str, jobs: Collection[Job]) -> Finding:
    text = (
        f"no guarded {kind} worker is known, so a slot is sent once and nobody reports what became of it "
        f"({len(jobs)} of the jobs); let the workers register first, then start replicas"
    )
    return Finding(Severity.WARNING, "workers", text)


def _workers_alone(tasks: Mapping[str, int], now: int) -> list[Finding]:
    if not tasks:
        return [Finding(Severity.WARNING, "workers", "no guarded worker is known in this namespace")]
    newest = max(tasks.values())
    if now - newest > _SILENT_MS:
        return [Finding(Severity.WARNING, "workers", f"the last guarded worker was seen {duration(now - newest)} ago")]
    return []


def _without_job(error: ConfigurationError) -> str:
    return f"{error.argument}: {error.problem}" if error.argument else error.problem


async def _check_redis(store: AsyncStore) -> list[Finding]:
    health = await check_redis(store)
    return [Finding(_SEVERITIES[each.level], "redis", f"{each.what}; {each.advice}") for each in health.findings]
