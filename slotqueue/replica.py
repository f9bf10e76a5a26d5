"""One replica: a ticker and a sweeper over one store, one clock and one plan. Made after fork, in its event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from slotqueue.answers import StoredEntry
from slotqueue.clock import RedisClock
from slotqueue.dead_letters import DeadLetters
from slotqueue.dispatch import Dispatcher
from slotqueue.events import Emit, ReplicaStopped
from slotqueue.jobs import Job
from slotqueue.planner import Planner
from slotqueue.process import about_process, process_id
from slotqueue.protocols import Enqueuer, Process, ReplicaStore
from slotqueue.stored_job import StoredJob
from slotqueue.sweeper import Sweeper
from slotqueue.ticker import Ticker

_READY_SECONDS = 10.0
_AHEAD_MS = 20
"""Slots are claimed this long before their time: a round trip, a timer that comes late, a message that is made, and
some to spare."""


class Pulse(NamedTuple):
    """How a replica's ticker is.

    Args:
        is_ticking: whether it has been started and goes on.
        tick_age: seconds since the last pass that ended well; None before the first.
        turn_age: seconds since the loop turned last, passes that found no Redis among them; None before the first.
        clock_offset: how many seconds this host's clock is ahead of Redis's; None before Redis has answered.
        jobs: how many it works by, those stored in Redis among them.
    """

    is_ticking: bool
    tick_age: float | None = None
    turn_age: float | None = None
    clock_offset: float | None = None
    jobs: int = 0


class Replica:
    """The parts of a replica, assembled.

    Args:
        store: the coordinating Redis.
        enqueuers: by kind; may grow while jobs are added.
        emit: takes events.
        default: the enqueuer of stored jobs that name none.
        namespace: what every key begins with.
        name: begins the replica's id; None for the host's name.
        sweep_every: seconds between two sweeps.
        spread: seconds by which claims are delayed at random.
        dead_letter: the job that is told of dead letters, if any.
    """

    def __init__(  # noqa: PLR0913 - what a SlotQueue was told
        self,
        store: ReplicaStore,
        enqueuers: Mapping[str, Enqueuer],
        emit: Emit,
        *,
        default: Enqueuer | None,
        namespace: str,
        name: str | None,
        sweep_every: float,
        spread: float,
        dead_letter: Job | None = None,
    ) -> None:
        self.process = Process(process_id(name), about_process())
        self.store = store
        self.emit = emit
        self.clock = RedisClock()
        self._planner = planner = Planner(namespace, ahead_ms=_AHEAD_MS)
        dispatcher = Dispatcher(store, enqueuers, emit)

        def build(entry: StoredEntry) -> Job:
            return StoredJob.of(entry).build(enqueuers, default, version=entry.version, since=entry.since)

        self.ticker = Ticker(store, planner, dispatcher, self.clock, self.process, emit, build=build, spread=spread)
        registrar = self.ticker.registrar
        self.sweeper = Sweeper(
            store,
            planner,
            dispatcher,
            self.clock,
            self.process,
            emit,
            every=sweep_every,
            letters=DeadLetters(store, dead_letter, namespace, lambda: registrar.epoch) if dead_letter else None,
        )

    @property
    def is_ready(self) -> bool:
        """Whether the ticker has made a pass lately."""
        at = self.ticker.ticked_at
        return at is not None and self.clock.monotonic() - at < _READY_SECONDS

    @property
    def pulse(self) -> Pulse:
        """How the ticker is; whether its loop goes on, others know."""
        now, ticker = self.clock.monotonic(), self.ticker
        return Pulse(
            is_ticking=True,
            tick_age=None if ticker.ticked_at is None else now - ticker.ticked_at,
            turn_age=None if ticker.turned_at is None else now - ticker.turned_at,
            clock_offset=self.clock.host_offset_ms() / 1000 if self.clock.is_set else None,
            jobs=len(self._planner),
        )

    async def leave(self) -> None:
        """Take this replica out of the registry.

        Raises:
            StoreUnavailable: it stays there until it is forgotten after a day.
        """
        await self.store.run(self.store.verbs.leave(self.process.id))
        self.emit(ReplicaStopped(self.process.id))
