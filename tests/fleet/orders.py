"""What a test orders of a process: as JSON in its environment, read by `tests.fleet.application`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

VARIABLE = "SLOTQUEUE_TEST_ORDERS"
GO = "go"
"""Redis key: once it is there, every slow function ends, and every enqueue that is held."""


class Arrow(StrEnum):
    """Where in the protocol a process dies."""

    CLAIMED = "after the claim, before the enqueue"
    ENQUEUED = "after the enqueue, before the confirm"
    CONFIRMED = "after the confirm"
    TAKEN = "a message in hand, before the begin"
    BEGUN = "after the begin, before the function"
    RUNNING = "in the function"
    RETURNED = "after the function, before the finish"
    FINISH_UNSENT = "during the finish, which never arrived"
    FINISH_UNHEARD = "during the finish, which arrived"


@dataclass(frozen=True, slots=True)
class Orders:
    """One process of a fleet.

    Args:
        name: of the process, in records, logs and events.
        url: of the coordinating Redis, perhaps through a proxy.
        effects_url: where functions count their runs; never through a proxy.
        broker_url: arq's Redis, "" for that of the effects.
        jobs: what goes to `SlotQueue.add`, with `every` and `offset` in seconds, or `cron`, for the schedule.
        lease: seconds, of jobs that say none; longer than any pause of the machine, where no test waits for its end.
        grace_ms: from a claim to the take-over of a slot that was not enqueued.
        clock_off: seconds that the process's wall clock is ahead.
        suspends: whether its monotonic clock stands still while it is frozen, as that of a machine that sleeps.
        late: seconds by which this replica decides behind a slot's time.
        worker: more of arq's worker settings.
        functions: more of them: name -> one that there is, and what goes to `arq.func`.
        is_here: whether the jobs are functions of the replicas' own processes.
        is_guarded: whether slotqueue is connected to the worker.
        arrow: where to die; "" for never.
        doomed: the job at whose first slot to die.
        fate: the signal to die of; by SIGSTOP it may come back to life.
        holds_enqueue: whether an enqueue waits until the test lets it go.
        enqueue_ms: how long an enqueue takes besides, for each message.
        sweep_ms: how long a sweep takes from finding overdue slots to taking them over.
    """

    name: str
    url: str
    effects_url: str
    jobs: list[dict[str, Any]] = field(default_factory=list)
    broker_url: str = ""
    namespace: str = "ran"
    sweep_every: float = 0.3
    claim_spread: float = 0.0
    lease: float = 30
    grace_ms: int = 10_000
    clock_off: float = 0.0
    suspends: bool = False
    late: float = 0.0
    worker: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    is_here: bool = False
    is_guarded: bool = True
    arrow: str = ""
    doomed: str = ""
    fate: str = "SIGKILL"
    holds_enqueue: bool = False
    enqueue_ms: float = 0.0
    sweep_ms: float = 0.0

    @classmethod
    def of_this_process(cls) -> Self:
        """Read what was ordered."""
        return cls(**json.loads(os.environ[VARIABLE]))

    def to_json(self) -> str:
        """The text for the environment."""
        return json.dumps(asdict(self))
