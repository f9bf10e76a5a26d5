"""Jobs: validated once, when they are added, and plain values from then on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from slotqueue.policy import Policy, Terms, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A named entry: what to run, when, and under which policy. Build it with `SlotQueue.add`.

    Args:
        name: unique in the namespace.
        schedule: a `slotqueue.protocols.Schedule`.
        task: the function's name in the worker system.
        args: positional arguments of the task.
        kwargs: keyword arguments of the task.
        queue: the queue to put it on, None for the enqueuer's own.
        options: what else the worker system shall do with the message; each enqueuer says which it knows.
        enqueuer: the enqueuer's kind: "arq", "celery", "inprocess".
        policy: as it was said, with the defaults of the application merged in.
        period: the gap between two neighbouring fire times.
        stored: its version in Redis, where it is stored there; 0 for a job in code.
        since: it owes nothing from before; ms of Redis's time, 0 where the registry alone says.

    Raises:
        ConfigurationError: a policy that cannot hold; names the job, the argument and what would be right.
    """

    name: str
    schedule: Any
    task: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    enqueuer: str
    policy: Policy
    period: timedelta
    stored: int = 0
    since: int = 0
    terms: Terms = field(init=False)
    """The policy with everything filled in."""
    terms_text: str = field(init=False)
    """Its text, as records and messages carry it."""
    jitter_ms: int = field(init=False)
    """The longest delay of an enqueue."""
    schedule_version: str = field(init=False)
    """Names the schedule: a job whose schedule changes owes nothing from before."""
    version: str = field(init=False)
    """Names all that was said about the job, "s<version>" for a stored one; the record says which one won the slot."""
    task_name: str = field(init=False)
    """The task with its worker system, as guarded workers register it: "arq:send_digest"."""

    def __post_init__(self) -> None:
        terms, terms_text, jitter_ms = resolve(self.name, self.policy, self.period)
        schedule = str(self.schedule)
        said = (
            schedule,
            self.task,
            self.args,
            sorted(self.kwargs.items()),
            self.queue,
            self.enqueuer,
            terms_text,
            *sorted(self.options.items()),
        )
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "terms_text", terms_text)
        object.__setattr__(self, "jitter_ms", jitter_ms)
        object.__setattr__(self, "schedule_version", _digest(schedule))
        object.__setattr__(self, "version", f"s{self.stored}" if self.stored else _digest(repr(said)))
        object.__setattr__(self, "task_name", f"{self.enqueuer}:{self.task}")

    @property
    def about(self) -> str:
        """What the registry says of the job, for those who have no code: jitter in ms, the policy's text, the task."""
        return f"{self.jitter_ms} {self.terms_text} {self.task_name}"

    def delay_of(self, fire_ms: int) -> int:
        """The jitter of one slot in ms, the same on every replica: in [0, jitter)."""
        if not self.jitter_ms:
            return 0
        digest = hashlib.blake2b(f"{self.name}\0{fire_ms}".encode(), digest_size=8).digest()
        return int(self.jitter_ms * int.from_bytes(digest) / 2**64)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
