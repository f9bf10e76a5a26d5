"""What is known of a job that an operator wants to run: from the application, else from Redis alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from slotqueue.errors import ConfigurationError
from slotqueue.ops.known import check_known, job_of
from slotqueue.ops.site import Site
from slotqueue.ops.timetable import schedule_from
from slotqueue.protocols import Schedule
from slotqueue.slots import from_ms, to_ms
from slotqueue.store.orders import Wanted
from slotqueue.store.registry import read_entry
from slotqueue.words import schedule_words

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """A job as an operator's slot needs it.

    Args:
        job: its name.
        schedule: None where only its application can compute it.
        task: with its worker system, "arq:send_digest".
        version: of the job; "" where only its application knows it.
        terms: `Terms.text`.
        decided: the newest fire time that was decided; None where there is none.
    """

    job: str
    schedule: Schedule | None
    task: str
    version: str
    terms: str
    decided: datetime | None = None

    @property
    def schedule_words(self) -> str:
        """The schedule in words."""
        return schedule_words(self.schedule)

    def wanted(self, key: str, fire_time: datetime) -> Wanted:
        """What the record of a slot needs; its interval begins at the fire time before."""
        before = self.schedule.latest_at(fire_time - _SECOND) if self.schedule is not None else self.decided
        start = before if before is not None and before < fire_time else fire_time
        return Wanted(key, to_ms(fire_time), to_ms(start), self.task, self.version, self.terms)

    def fires_at(self, at: datetime) -> bool:
        """Whether the schedule fires at an instant; False where that cannot be told."""
        return self.schedule is not None and any(True for _ in self.schedule.between(at, at + _SECOND))


async def plan_of(site: Site, job: str) -> Plan | None:
    """Find out what is known of a job; None where it is not known, or no replica has said its task and policy.

    Raises:
        ConfigurationError: a stored job that this version cannot read.
        StoreUnavailable: ask again.
    """
    found = await job_of(site, job)
    if found is not None:
        return Plan(job, found.schedule, found.task_name, found.version, found.terms_text)
    entry, texts = await read_entry(site.reader, job)
    if entry is None or entry.about is None:
        return None
    newest = max((span for span in entry.spans if span.until is None), key=lambda span: span.since, default=None)
    schedule = schedule_from(texts.get(newest.version, "")) if newest is not None else None
    decided = from_ms(entry.decided) if entry.decided else None
    return Plan(job, schedule, entry.about.task, "", entry.about.terms.text, decided)


async def known_plan_of(site: Site, job: str) -> Plan:
    """Find out what is known of a job.

    Raises:
        ConfigurationError: it is not known, or not enough of it.
        StoreUnavailable: ask again.
    """
    plan = await plan_of(site, job)
    if plan is None:
        await check_known(site, job)
        raise ConfigurationError(
            "no replica has said which task and policy it has; name its application as MODULE:ATTRIBUTE", job=job
        )
    return plan
