"""A row for each job: what it does, how its newest slot stands, and whether anything is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.ops.fires import zone_of
from slotqueue.ops.known import unknown_job
from slotqueue.ops.pauses import Pause, pauses
from slotqueue.ops.silence import is_silent
from slotqueue.ops.site import Site, job_of_key
from slotqueue.ops.timetable import Timetable
from slotqueue.slots import SlotState, from_ms, parse_key, to_ms
from slotqueue.store.registry import JobEntry, Registry, Span, about_of, read_registry
from slotqueue.store.survey import Survey, Tally
from slotqueue.words import in_words

_LONG_AGO = from_ms(0)
DECIDED_WITHIN_MS = 60_000
"""A slot that is due for longer, its job's jitter apart, and that nobody has decided is a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """One job as it stands.

    Args:
        job: its name.
        schedule: the text of its schedule, "" where none is in force.
        says: the schedule in words.
        zone: in which it thinks.
        task: with its worker system, "arq:send_digest"; "" where no replica has said it.
        is_in_force: False where the job was removed, and only its slots are left.
        last_key: the newest slot on record, "" for none.
        last_fire: its fire time, aware UTC instant.
        last_state: where it stands; None where there is no slot, or its record is gone or damaged.
        next_fire: aware UTC instant; None where it fires no more, or only its application can tell.
        next_local: the same instant in its zone.
        open: how many slots are open.
        overdue: how many of these should be done by now (`done_within`).
        dead: how many dead letters there are, lost slots among them.
        undecided_since: a slot has been due since then and nobody has decided it: its replicas are away.
        is_paused: whether the slots that fall due are skipped.
        paused_until: None for ever, or where it is not paused.
        paused_by, paused_why: who paused it, and in which words; "" where that is not on record.
        is_guarded: whether a guarded worker knows the task; None where the task is not known.
        is_registered: False for a job of the application that no replica has ever made known.
    """

    job: str
    schedule: str
    says: str
    zone: str
    task: str
    is_in_force: bool
    last_key: str
    last_fire: datetime | None
    last_state: SlotState | None
    next_fire: datetime | None
    next_local: datetime | None
    open: int
    overdue: int
    dead: int
    undecided_since: datetime | None
    is_paused: bool
    paused_until: datetime | None
    paused_by: str
    paused_why: str
    is_guarded: bool | None
    is_registered: bool = True


@dataclass(frozen=True, slots=True)
class Status:
    """All jobs by name, and when any replica was last seen (None for never). `asked_at` is Redis's time."""

    jobs: tuple[JobStatus, ...]
    replica_seen: datetime | None
    asked_at: datetime
    namespace: str = ""

    @property
    def is_known(self) -> bool:
        """Whether any job is known, or any replica has ever registered."""
        return bool(self.jobs) or self.replica_seen is not None

    @property
    def is_replica_up(self) -> bool:
        """Whether any replica gave a sign of life within the last minute; its ticks do every 10 s."""
        return self.replica_seen is not None and not is_silent(to_ms(self.replica_seen), to_ms(self.asked_at))


async def status(site: Site, *, job: str | None = None) -> Status:
    """Tell how each job stands; of removed ones those that have open slots or dead letters.

    Args:
        site: where to look; without an application the registry in Redis tells the schedules.
        job: only this one.

    Raises:
        ConfigurationError: nobody knows the job.
        StoreUnavailable: ask again.
    """
    survey = Survey(site.store, site.namespace)
    found = await read_registry(survey)
    registry = _with_jobs(found, site.jobs or {})
    if job is not None and job not in registry.jobs:
        raise unknown_job(site, registry.jobs, job)
    counts = await count_slots(survey, registry)
    entries = [registry.jobs[job]] if job is not None else _shown(registry, counts)
    heads = await survey.heads([entry.name for entry in entries])
    tallies = dict(zip(filter(None, heads), await survey.tallies([key for key in heads if key]), strict=True))
    timetable, zones = Timetable(registry, site.jobs), _Zones()
    paused = {each.job: each for each in await pauses(site)}
    rows = [
        _row(
            entry,
            registry,
            timetable,
            zones,
            counts,
            _longest(paused, entry.name),
            (key, tallies.get(key)),
            is_registered=entry.name in found.jobs,
        )
        for entry, key in zip(entries, heads, strict=True)
    ]
    seen = from_ms(registry.fleet_seen) if registry.fleet_seen else None
    return Status(tuple(rows), seen, from_ms(registry.now), site.namespace)


def _with_jobs(registry: Registry, jobs: Mapping[str, Job]) -> Registry:
    """Add jobs of an application that no replica has made known: they owe nothing from before now."""
    new = {name: job for name, job in jobs.items() if name not in registry.jobs}
    entries = {
        name: JobEntry(name, (Span(job.schedule_version, registry.now, None),), 0, about_of(job.about))
        for name, job in new.items()
    }
    texts = {job.schedule_version: str(job.schedule) for job in new.values()}
    return replace(registry, jobs={**registry.jobs, **entries}, schedules={**texts, **registry.schedules})


def undecided_since(entry: JobEntry, registry: Registry, timetable: Timetable) -> int | None:
    """The oldest fire time of a job that is due and that nobody has decided, ms; None where all is well."""
    span = timetable.current(entry)
    return _overdue(entry, registry, _following(entry, span, timetable) if span else None)


def _overdue(entry: JobEntry, registry: Registry, following: int | None) -> int | None:
    """The fire time after the last decided one where it is due for too long, None where all is well."""
    patience = DECIDED_WITHIN_MS + (entry.about.jitter if entry.about else 0)
    return following if following is not None and following < registry.now - patience else None


class SlotCounts:
    """Open, overdue and dead slots by job."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()
        self.overdue: Counter[str] = Counter()
        self.dead: Counter[str] = Counter()


async def count_slots(survey: Survey, registry: Registry) -> SlotCounts:
    """Count open, overdue and dead slots by job.

    Raises:
        StoreUnavailable: ask again.
    """
    counts = SlotCounts()
    for key in await survey.open_keys():
        name = job_of_key(key)
        counts.open[name] += 1
        entry = registry.jobs.get(name)
        if entry and entry.about and to_ms(parse_key(key).fire_time) + entry.about.terms.done_within < registry.now:
            counts.overdue[name] += 1
    counts.dead.update(map(job_of_key, await survey.dead_keys()))
    return counts


def _shown(registry: Registry, counts: SlotCounts) -> list[JobEntry]:
    entries = sorted(registry.jobs.values(), key=lambda entry: entry.name)
    return [each for each in entries if each.is_in_force or counts.open[each.name] or counts.dead[each.name]]


def _longest(pauses: Mapping[str | None, Pause], job: str) -> Pause | None:
    """Of the pauses of a job and of all jobs the one that ends last."""
    found = [pauses[name] for name in (job, None) if name in pauses]
    return max(found, key=lambda pause: (pause.until is None, pause.until or pause.since or _LONG_AGO), default=None)


class _Zones(dict[str, tuple[str, tzinfo, str]]):
    """Of each schedule version the zone, and the schedule in words."""

    def of(self, version: str, schedule: Any, text: str) -> tuple[str, tzinfo, str]:  # noqa: ANN401 - any schedule
        """Say it once."""
        if version not in self:
            name, zone = zone_of(schedule)
            self[version] = (name, zone, in_words(schedule) if schedule is not None else text)
        return self[version]


def _row(
    entry: JobEntry,
    registry: Registry,
    timetable: Timetable,
    zones: _Zones,
    counts: SlotCounts,
    pause: Pause | None,
    head: tuple[str, Tally | None],
    *,
    is_registered: bool,
) -> JobStatus:
    key, tally = head
    span = timetable.current(entry)
    text = registry.schedules.get(span.version, "") if span else ""
    name, zone, says = zones.of(span.version, timetable.schedule(span.version), text) if span else ("", None, "")
    last = parse_key(key).fire_time if key else None
    now = max(registry.now, to_ms(last) if last else 0)  # a slot may have been claimed since the registry was read
    following = _following(entry, span, timetable) if span else None
    undecided = _overdue(entry, registry, following)
    if span and following is not None and following <= now:
        following = _next(span, now, timetable)
    next_fire = from_ms(following) if following is not None else None
    about = entry.about
    return JobStatus(
        job=entry.name,
        schedule=text,
        says=says,
        zone=name,
        task=about.task if about else "",
        is_in_force=span is not None,
        last_key=key,
        last_fire=last,
        last_state=tally.state if tally else None,
        next_fire=next_fire,
        next_local=next_fire.astimezone(zone) if next_fire else None,
        open=counts.open[entry.name],
        overdue=counts.overdue[entry.name],
        dead=counts.dead[entry.name],
        undecided_since=from_ms(undecided) if undecided is not None else None,
        is_paused=pause is not None,
        paused_until=pause.until if pause else None,
        paused_by=pause.by if pause else "",
        paused_why=pause.why if pause else "",
        is_guarded=about.task in registry.tasks if about else None,
        is_registered=is_registered,
    )


def _following(entry: JobEntry, span: Span, timetable: Timetable) -> int | None:
    """The fire time after the last decided one."""
    try:
        return timetable.next_after(span.version, max(entry.decided, span.since))
    except ConfigurationError:
        return None


def _next(span: Span, now: int, timetable: Timetable) -> int | None:
    """The next fire time from now."""
    try:
        return timetable.next_after(span.version, now)
    except ConfigurationError:
        return None
