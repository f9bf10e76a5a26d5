"""What the namespace knows of its jobs and its fleet, read at once: no code is needed to tell what should have run.

Instants are ms of Redis's time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from slotqueue.policy import Terms
from slotqueue.store.asking import Asker, Queue
from slotqueue.store.readings import VersionKnown, as_instant, as_number, versions_of

FLEET = ""
"""The field of the registry of jobs that says when any replica was last seen."""
_GONE_MS = 900_000
"""A job that was away for so long while replicas were up was removed: register.lua, QUARTER."""
_NOT_RENEWED_MS = 360_000
"""A replica makes its jobs known every 5 min: a version of which there was no sign for so long has none any more."""


class Span(NamedTuple):
    """A schedule version in force: fire times in (since, until]; `until` is None where it still is."""

    version: str
    since: int
    until: int | None


class About(NamedTuple):
    """What a replica said of a job: the longest jitter in ms, the policy, the task with its worker system."""

    jitter: int
    terms: Terms
    task: str


@dataclass(frozen=True, slots=True)
class JobEntry:
    """One job in the registry.

    Args:
        name: the job's name.
        spans: its schedule versions, in the order in which they came into force.
        decided: every slot up to this fire time is decided, 0 for none.
        about: None where no replica has said it.
    """

    name: str
    spans: tuple[Span, ...]
    decided: int
    about: About | None

    @property
    def is_in_force(self) -> bool:
        """Whether any of its schedules is: the job has not been removed."""
        return any(span.until is None for span in self.spans)


@dataclass(frozen=True, slots=True)
class Registry:
    """What the namespace knows.

    Args:
        now: Redis's time.
        fleet_seen: when any replica was last seen, 0 for never.
        jobs: by name.
        schedules: their texts by version.
        tasks: "arq:send_digest" -> when a guarded worker that knows it was last seen.
    """

    now: int
    fleet_seen: int
    jobs: Mapping[str, JobEntry]
    schedules: Mapping[str, str]
    tasks: Mapping[str, int]


async def read_registry(asker: Asker) -> Registry:
    """Read it in a few round trips, however many jobs there are.

    Raises:
        StoreUnavailable: ask again.
    """
    keys = asker.keys
    answers = await asker.ask(
        [
            *(_all_of(keys.of(word)) for word in ("jobs", "decided", "about", "past", "schedules")),
            lambda pipe: pipe.zrange(keys.of("tasks"), 0, -1, withscores=True),
        ]
    )
    jobs, decided, about, past, schedules, tasks = map(asker.sound, answers)
    now = await asker.now()
    fleet_seen, _, uptime = jobs.get(FLEET, "").partition(":")
    return Registry(
        now=now,
        fleet_seen=as_number(fleet_seen),
        jobs={
            name: JobEntry(
                name,
                (*_past(past.get(name, "")), *spans_of(versions_of(text), as_number(uptime))),
                as_number(decided.get(name)),
                about_of(about.get(name, "")),
            )
            for name, text in jobs.items()
            if name != FLEET
        },
        schedules=schedules,
        tasks={task: as_instant(score) or 0 for task, score in tasks},
    )


async def read_entry(asker: Asker, job: str) -> tuple[JobEntry | None, Mapping[str, str]]:
    """Read one job, None where no replica ever registered it, and the texts of its schedules by version.

    Raises:
        StoreUnavailable: ask again.
    """
    keys = asker.keys
    wanted = (("jobs", FLEET), ("jobs", job), ("decided", job), ("about", job), ("past", job))
    fleet, text, decided, about, past = map(asker.sound, await asker.ask(_one(keys.of(k), name) for k, name in wanted))
    if text is None:
        return None, {}
    spans = (*_past(past or ""), *spans_of(versions_of(text), as_number((fleet or "").partition(":")[2])))
    texts = await asker.ask(_one(keys.of("schedules"), span.version) for span in spans)
    schedules = {span.version: said for span, said in zip(spans, map(asker.sound, texts), strict=True) if said}
    return JobEntry(job, spans, as_number(decided), about_of(about or "")), schedules


def spans_of(versions: tuple[VersionKnown, ...], uptime: int) -> tuple[Span, ...]:
    """Tell when the versions of a job that are still in the registry were in force.

    One that was away while replicas were up was removed when it was last seen; so was one beside which another was
    there and has been renewed since, as after a rollback. One that was not seen since another came was replaced by it.
    """
    spans = []
    for each in versions:
        later = [other.since for other in versions if other.since > each.seen]
        is_left = any(other.since <= each.seen and other.uptime - each.uptime > _NOT_RENEWED_MS for other in versions)
        until = each.seen if is_left or uptime - each.uptime > _GONE_MS else min(later, default=None)
        spans.append(Span(each.version, each.since, until))
    return tuple(spans)


def about_of(text: str) -> About | None:
    """Read `Job.about`; None where there is none, or it is damaged."""
    words = text.split(" ", len(Terms._fields) + 1)
    if len(words) < len(Terms._fields) + 2:
        return None
    terms = _terms_of(" ".join(words[1:-1]))
    return About(as_number(words[0]), terms, words[-1]) if terms is not None else None


@lru_cache(maxsize=1000)
def _terms_of(text: str) -> Terms | None:
    """Read a policy; most jobs share theirs with many others."""
    try:
        return Terms.parse(text)
    except (ValueError, IndexError, TypeError):
        return None


def _past(text: str) -> list[Span]:
    entries = [entry.split(":") for entry in text.split()]
    return [Span(each[0], as_number(each[1]), as_number(each[2])) for each in entries if len(each) == 3]


def _one(key: str, field: str) -> Queue:
    return lambda pipe: pipe.hget(key, field)


def _all_of(key: str) -> Queue:
    return lambda pipe: pipe.hgetall(key)
