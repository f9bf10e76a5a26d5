"""What a soak orders of a process, as JSON in its environment, and the jobs of the service."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Self

from slotqueue import Every

VARIABLE = "SLOTQUEUE_SOAK"


@dataclass(frozen=True, slots=True)
class SoakJob:
    """A job of the service.

    Args:
        name: of the job and of its task.
        every, offset: seconds, of its schedule.
        on_crash: the crash policy.
        seconds: how long a run takes.
        versions: in which versions of the service it is.
    """

    name: str
    every: int
    on_crash: str
    offset: int = 0
    seconds: float = 0.0
    versions: tuple[int, ...] = (1, 2)

    @property
    def schedule(self) -> Every:
        """When its slots are due."""
        return Every(seconds=self.every, offset=self.offset)


LEASE_S = 2.0
LOOKBACK_S = 120
JOBS = (
    SoakJob("complete", 1, "complete"),
    SoakJob("skip", 1, "skip"),
    SoakJob("complete_long", 3, "complete", seconds=1.2),
    SoakJob("skip_long", 3, "skip", offset=1, seconds=1.2),
    # What a deploy leaves out and brings: while two versions are out side by side, each decides its own.
    SoakJob("complete_old", 2, "complete", versions=(1,)),
    SoakJob("complete_new", 2, "complete", offset=1, versions=(2,)),
)


@dataclass(frozen=True, slots=True)
class Orders:
    """One process of a soak.

    Args:
        name: of the process, in records, logs and the ledger.
        url: of the coordinating Redis, through a proxy.
        broker_url: where the messages are.
        ledger: the file in which the process writes what it did.
        worker: "arq" or "celery".
        version: of the service.
        replicas_to_ack: see `SlotQueue`.
        bugs: planted in slotqueue's own scripts.
    """

    name: str
    url: str
    broker_url: str
    ledger: str
    worker: str
    version: int = 1
    replicas_to_ack: int = 0
    bugs: tuple[str, ...] = ()

    @classmethod
    def of_this_process(cls) -> Self:
        """Read what was ordered."""
        return cls(**json.loads(os.environ[VARIABLE]))

    def environment(self) -> dict[str, str]:
        """What to add to the environment of the process."""
        return {VARIABLE: json.dumps(asdict(self))}

    def policy(self, job: SoakJob) -> dict[str, Any]:
        """The policy of a job: quick to recover, and patient with a machine that breaks all the time."""
        return {
            "on_crash": job.on_crash,
            "lease": LEASE_S,
            "lookback": LOOKBACK_S,  # of a job a second; of the others it is more
            "requeue_after": 4,
            "max_attempts": 100,
            "done_within": 60,
        }
