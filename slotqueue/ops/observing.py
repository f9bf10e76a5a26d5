"""What a namespace looks like in numbers, for metrics: a few round trips, however many jobs and slots there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from slotqueue.ops.processes import replicas, workers
from slotqueue.ops.site import Site
from slotqueue.ops.status import count_slots, undecided_since
from slotqueue.ops.timetable import Timetable
from slotqueue.slots import from_ms
from slotqueue.store.registry import Registry, read_registry
from slotqueue.store.survey import Survey

MOST_UNDECIDED = 1000
"""So many undecided slots are counted of one job."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A namespace in numbers; what is by job leaves out zeros.

    Args:
        jobs: those whose schedules are in force.
        claimed: how many slots were ever claimed.
        reopened: how many that had ended were brought back, or were finished all the same.
        ended: by state and job, how many slots ever ended so; those of gaps, which nobody claimed, as missed.
        open, overdue, dead: by job, as in `slotqueue.ops.status`.
        undecided: by job, slots that have been due for a minute and that nobody has decided; up to 1000 are counted.
        replicas, workers: how many are there and not silent.
        last_tick: when any replica gave a sign of life, which its ticks do every 10 s; None for never.
    """

    jobs: tuple[str, ...]
    claimed: int
    reopened: int
    ended: Mapping[tuple[str, str], int]
    open: Mapping[str, int]
    overdue: Mapping[str, int]
    dead: Mapping[str, int]
    undecided: Mapping[str, int]
    replicas: int
    workers: int
    last_tick: datetime | None


async def observe(site: Site) -> Observed:
    """Observe a namespace.

    Raises:
        StoreUnavailable: ask again.
    """
    survey = Survey(site.store, site.namespace)
    registry = await read_registry(survey)
    counts = await count_slots(survey, registry)
    claimed, reopened, ended = _reckoned(await survey.counts())
    return Observed(
        jobs=tuple(sorted(name for name, entry in registry.jobs.items() if entry.is_in_force)),
        claimed=claimed,
        reopened=reopened,
        ended=ended,
        open=counts.open,
        overdue=counts.overdue,
        dead=counts.dead,
        undecided=_undecided(registry, Timetable(registry, site.jobs)),
        replicas=sum(not each.is_silent for each in await replicas(site)),
        workers=sum(not each.is_silent for each in await workers(site)),
        last_tick=from_ms(registry.fleet_seen) if registry.fleet_seen else None,
    )


def _reckoned(counts: Mapping[str, int]) -> tuple[int, int, dict[tuple[str, str], int]]:
    ended: Counter[tuple[str, str]] = Counter()
    for field, number in counts.items():
        state, has_job, job = field.partition(" ")
        if has_job:
            ended[state, job] += number
    return counts.get("claimed", 0), counts.get("reopened", 0), dict(ended)


def _undecided(registry: Registry, timetable: Timetable) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, entry in registry.jobs.items():
        since = undecided_since(entry, registry, timetable)
        span = timetable.current(entry)
        if since is None or span is None or (schedule := timetable.schedule(span.version)) is None:
            continue
        fires = schedule.between(from_ms(since), from_ms(registry.now) + timedelta(milliseconds=1))
        found[name] = sum(1 for _ in islice(fires, MOST_UNDECIDED))
    return found
