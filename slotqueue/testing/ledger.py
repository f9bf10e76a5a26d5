"""What came of a simulation: each slot's story in figures, and the sums for each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slotqueue.answers import Claims, Gap, Offer, Word
from slotqueue.jobs import Job
from slotqueue.slots import Slot, SlotState, from_ms
from slotqueue.testing.steps import Step, Strikes

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class SlotLedger:
    """One slot.

    Args:
        key: the slot key.
        job: the job's name.
        fire_time: aware UTC instant.
        state: where it stood at the end.
        attempts: how many replicas tried to claim it, tries again after a crash included.
        replica: who won it.
        enqueues: how many messages there were for it.
        runs: how often its function was started.
    """

    key: str
    job: str
    fire_time: datetime
    state: SlotState
    attempts: int
    replica: str
    enqueues: int
    runs: int


@dataclass(frozen=True, slots=True)
class JobLedger:
    """One job: the sums over its slots.

    Args:
        job: its name.
        due: how many slots there were; `states` sums up to this.
        attempts, claims, enqueues, runs: how many of each.
        states: how many slots stood where at the end; those that nobody decided are `missed`.
    """

    job: str
    due: int
    attempts: int
    claims: int
    enqueues: int
    runs: int
    states: Mapping[SlotState, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A simulation, in figures.

    Args:
        start, end: aware UTC instants; slots due in `[start, end)`.
        replicas: how many there were at a time.
        jobs: by name, in the order of the application.
        slots: by fire time; without those that nobody decided.
        crashes: how often a process died, by where.
    """

    start: datetime
    end: datetime
    replicas: int
    jobs: Mapping[str, JobLedger]
    slots: Sequence[SlotLedger]
    crashes: Mapping[Step, int]


@dataclass(slots=True)
class Tally:
    """What is counted of a slot while it goes on."""

    slot: Slot
    attempts: int = 0
    replica: str = ""
    enqueues: int = 0
    runs: int = 0


@dataclass(slots=True)
class Book:
    """What is written down while a simulation goes on.

    Args:
        strikes: who dies.
        tallies: by slot key.
        missed: how many slots nobody decided, by job.
    """

    strikes: Strikes
    tallies: dict[str, Tally] = field(default_factory=dict)
    missed: Counter[str] = field(default_factory=Counter)

    def of(self, key: str) -> Tally:
        """The tally of a slot that was offered."""
        return self.tallies[key]

    def note_claims(self, offers: Sequence[Offer], claims: Claims, replica: str) -> None:
        """Count attempts, and who won."""
        for offer, verdict in zip(offers, claims.verdicts, strict=True):
            tally = self.tallies.setdefault(offer.slot.key, Tally(offer.slot))
            tally.attempts += 1
            if verdict.word is not Word.TAKEN and not tally.replica:
                tally.replica = replica

    def note_gaps(self, gaps: Sequence[Gap], recorded: Sequence[int]) -> None:
        """Count slots that are recorded as missed."""
        for gap, after in zip(gaps, recorded, strict=True):
            if after:
                fires = gap.job.schedule.between(from_ms(after) + _MILLISECOND, from_ms(gap.until) + _MILLISECOND)
                self.missed[gap.job.name] += sum(1 for _ in fires)

    def close(
        self, jobs: Sequence[Job], start: datetime, end: datetime, replicas: int, states: Mapping[str, str]
    ) -> Ledger:
        """Sum up.

        Args:
            jobs: in their order.
            start, end, replicas: see `Ledger`.
            states: where each slot of `tallies` stands.
        """
        slots = [
            SlotLedger(
                key,
                each.slot.job,
                each.slot.fire_time,
                SlotState(states[key]),
                each.attempts,
                each.replica,
                each.enqueues,
                each.runs,
            )
            for key, each in sorted(self.tallies.items(), key=lambda item: (item[1].slot.fire_time, item[0]))
        ]
        by_job: dict[str, list[SlotLedger]] = {job.name: [] for job in jobs}
        for slot in slots:
            by_job[slot.job].append(slot)
        counts = self.strikes.counts
        sums = {job.name: self._sum(job, by_job[job.name], start, end) for job in jobs}
        return Ledger(start, end, replicas, sums, slots, {step: counts[step] for step in Step if counts[step]})

    def _sum(self, job: Job, slots: Sequence[SlotLedger], start: datetime, end: datetime) -> JobLedger:
        states = Counter(slot.state for slot in slots)
        states[SlotState.MISSED] += self.missed[job.name]
        return JobLedger(
            job=job.name,
            due=sum(1 for _ in job.schedule.between(start, end)),
            attempts=sum(slot.attempts for slot in slots),
            claims=sum(1 for slot in slots if slot.replica),
            enqueues=sum(slot.enqueues for slot in slots),
            runs=sum(slot.runs for slot in slots),
            states={state: states[state] for state in SlotState if states[state]},
        )
