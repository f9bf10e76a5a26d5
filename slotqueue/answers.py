"""What the store is told and asked about, and what it answers: values, one each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self
from zlib import crc32

from slotqueue.jobs import Job
from slotqueue.messages import Slip
from slotqueue.policy import Terms
from slotqueue.slots import Slot


@dataclass(frozen=True, slots=True)
class Known:
    """What a replica knows of a job of its own; instants in ms since the epoch, 0 for nothing.

    Args:
        since: the job owes nothing from before.
        decided: every slot up to this one is decided.
        schedule: the schedule's text, about: `Job.about`; "" where they were said before.
    """

    job: str
    schedule_version: str
    since: int = 0
    decided: int = 0
    schedule: str = ""
    about: str = ""

    @classmethod
    def of(cls, job: Job, since: int = 0, decided: int = 0) -> Self:
        """All that is said of a job."""
        return cls(job.name, job.schedule_version, since, decided, str(job.schedule), job.about)


class Share(NamedTuple):
    """Which of a burst's slots a replica claims first: of `size` replicas it is number `rank`, from 0.

    Replicas need not be of one mind about it: it saves work and decides nothing.
    """

    rank: int = 0
    size: int = 1

    def holds(self, job: str, fire_ms: int) -> bool:
        """Whether a slot is in this share."""
        return self.size < 2 or crc32(job.encode(), fire_ms & 0xFFFFFFFF) % self.size == self.rank


class Registered(NamedTuple):
    """The answer to `register`: Redis's time, the namespace's epoch, what is known of each job, in order.

    `share`: this replica's part of the fleet, with the last chunk; else None.
    """

    now: int
    epoch: str
    jobs: list[Known]
    share: Share | None


class Word(StrEnum):
    """The one-word answers of the store."""

    WON = "won"
    TAKEN = "taken"
    EARLY = "early"
    HELD = "held"
    SKIPPED = "skipped"
    QUEUED = "queued"
    SENT = "sent"
    RELEASED = "released"
    STALE = "stale"
    YES = "yes"
    DEAD = "dead"
    FAILED = "failed"
    DONE = "done"
    OVER = "over"
    BUSY = "busy"
    EXPIRED = "expired"
    LOST = "lost"
    MISSED = "missed"
    ENQUEUE = "enqueue"
    GONE = "gone"
    UNKNOWN = "unknown"
    LATER = "later"
    BROKEN = "broken"
    """This slot's keys in Redis are damaged; the detail says how."""


class Verdict(NamedTuple):
    """An answer about one slot of a batch, with a detail where the word needs one."""

    word: Word
    detail: str = ""


class Offer(NamedTuple):
    """A slot that is due, with its job: what a replica claims."""

    job: Job
    slot: Slot


class Claims(NamedTuple):
    """The answer to `claim`: Redis's time in ms, whether the epoch was the remembered one, a verdict for each offer.

    The detail of `HELD` and `SKIPPED` says why.

    With a changed epoch nothing was claimed and `verdicts` is empty: Redis lost its data.
    """

    exact_now: float
    is_same_epoch: bool
    verdicts: list[Verdict]

    @property
    def now(self) -> int:
        """Redis's time in whole ms, as the records have it."""
        return int(self.exact_now)


@dataclass(frozen=True, slots=True)
class Gap:
    """Slots of a job that nobody decided and that are not worth catching up: fire times in `(after, until]`, ms.

    `slots`: how many they are; None where nobody has counted, or can within reason.
    """

    job: Job
    after: int
    until: int
    why: str
    slots: int | None = None


class Overdue(NamedTuple):
    """Open slots past their deadline, the longest overdue first; Redis's time in ms; how many slots are open in all."""

    now: int
    keys: list[str]
    open: int


class Takeover(NamedTuple):
    """What became of an open slot past its deadline.

    `word` is `ENQUEUE` with the slip to enqueue and the state it had `before`; or where the slot ended or stays:
    `DONE`, `GONE`, `UNKNOWN`, `MISSED`, `SKIPPED`, `LOST`, `DEAD`, `HELD`, `LATER`, `BROKEN`.
    """

    key: str
    word: Word
    detail: str = ""
    before: str = ""
    slip: Slip | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A worker's hold on a slot: proof of a begin, and what every later write about it carries.

    Args:
        slip: what the message said.
        fence: guards every write; grows at each begin. 0 where it is not known (Celery's parent process): then the
            token alone guards `fail`.
        token: unique per delivery, so that a begin whose reply was lost finds its own lease.
        worker: who runs it.
        attempt: 1 for the first.
        waited_ms: how long the slot had waited since it was claimed (where that was ahead, since its fire time),
            enqueued again or due again; None where this delivery asks again.
    """

    slip: Slip
    fence: int
    token: str
    worker: str
    attempt: int
    waited_ms: int | None = field(default=None, compare=False)

    @property
    def terms(self) -> Terms:
        """The policy under which the slot was claimed."""
        return Terms.parse(self.slip.terms)


class Dropped(NamedTuple):
    """The answer to a begin that may not run: `DONE`, `OVER`, `BUSY`, `SKIPPED`, `EXPIRED`, `LOST` or `BROKEN`.

    The store also answers `EARLY`, with the ms until it is time; the guard waits and asks again.
    """

    why: Word
    detail: str = ""


class StoredEntry(NamedTuple):
    """A stored job, as Redis keeps it.

    Args:
        job: its name.
        version: grows with every change; about ms of Redis's time. 0 for a damaged entry.
        since: it owes nothing from before; ms of Redis's time.
        raw: the whole entry, "" where the job was removed.
    """

    job: str
    version: int
    since: int
    raw: str

    @property
    def text(self) -> str:
        """What was said of the job: JSON, see `slotqueue.stored_job`."""
        return "" if not self.version else self.raw.split(" ", 3)[3]

    @classmethod
    def parse(cls, job: str, entry: str) -> Self:
        """Read an entry; see put.lua."""
        version, since, _, text = [*entry.split(" ", 3), "", "", "", ""][:4]
        is_sound = version.isdecimal() and since.isdecimal() and text
        return cls(job, int(version), int(since), entry) if is_sound else cls(job, 0, 0, entry)


class Written(NamedTuple):
    """The answer to `put` and `remove`: whether it was done, and the new version, or else the one that is stored."""

    is_done: bool
    version: int


class Changes(NamedTuple):
    """What has changed about the stored jobs.

    Args:
        since: they are told from this version on, 0 for all of them from the start.
        version: up to which version they are told.
        stored: how many jobs are stored.
        is_last: whether no more follow.
        entries: by job; without text for one that was removed.
    """

    since: int
    version: int
    stored: int
    is_last: bool
    entries: list[StoredEntry]
