"""Days of schedule in seconds: real planners, tickers, sweepers and scripts on a real server, in a time that jumps.

What is simulated: the time, the queue with its workers, and who dies. Time stands still while something happens and
jumps to what is next: a slot, a deadline that a sweep will find, the end of a run. A sweep that would find nothing is
left out; so is a replica's registration while nothing is due. Keys do not expire.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from slotqueue.app import SlotQueue
from slotqueue.dispatch import Dispatcher
from slotqueue.errors import ConfigurationError
from slotqueue.events import Event
from slotqueue.guard import worker_process
from slotqueue.jobs import Job
from slotqueue.ops.site import Site
from slotqueue.planner import Planner
from slotqueue.protocols import Enqueuer, Process
from slotqueue.slots import to_ms
from slotqueue.sweeper import Sweeper
from slotqueue.testing.agenda import Agenda
from slotqueue.testing.ledger import Book, Ledger
from slotqueue.testing.schedules import aware
from slotqueue.testing.server import empty_database
from slotqueue.testing.simulated_queue import SimulatedQueue
from slotqueue.testing.steps import Crash, Died, Strikes
from slotqueue.testing.virtual import ImmediateStore, VirtualClock, VirtualRedis
from slotqueue.testing.watched import WatchedCommands
from slotqueue.ticker import Ticker
from slotqueue.window import Window

_MOST_REPLICAS = 100
_LATEST_MS = 20
"""How far apart replicas tick."""
_RESTART_MS = 10_000
"""A replica that died is back after this."""
_SHORTEST_DEADLINE_MS = 1000
"""What is opened now is not overdue before this has passed."""
_DAY_MS = 86_400_000
_ENLIST_EVERY_MS = 30 * _DAY_MS


async def simulate(
    slots: SlotQueue,
    start: datetime,
    end: datetime,
    *,
    replicas: int = 5,
    crash: Crash = None,
    takes: timedelta | float = 1.0,
    seed: int = 0,
) -> Ledger:
    """Let replicas and workers handle all slots of a while, some of them dying, and sum up.

    No function is called, and neither the application's Redis nor its broker is asked. The same arguments come to the
    same end.

    Args:
        slots: the application.
        start, end: aware instants: slots due in `[start, end)`. What is open then is followed until it has ended.
        replicas: 1 to 100; one that dies is back after 10 s.
        crash: the probability of dying at each step of each slot, 0 to 1; or a function of slot and step that says
            whether to die there, asked each time. Default: nobody dies.
        takes: `timedelta` or seconds, > 0: how long each function runs.
        seed: of chance: who comes first, who dies.

    Returns:
        The ledger: attempts, claims, enqueues, runs and states of each slot and each job.

    Raises:
        ConfigurationError: an argument out of bounds, or no server is installed.
    """
    seconds = takes.total_seconds() if isinstance(takes, timedelta) else takes
    if not 1 <= replicas <= _MOST_REPLICAS:
        raise ConfigurationError(f"{replicas} is not between 1 and {_MOST_REPLICAS}", argument="replicas")
    if not 0 < seconds < _DAY_MS:
        raise ConfigurationError(f"{takes!r} is no time that a function may take; say seconds", argument="takes")
    start, end = aware("start", start), aware("end", end)
    if start >= end:
        raise ConfigurationError(f"{end.isoformat()} is not after the start", argument="end")
    dice = random.Random(seed)
    book = Book(Strikes(crash, dice))
    jobs = [replace(job, schedule=Window(job.schedule, start, end)) for job in slots.jobs.values()]
    agenda = Agenda(to_ms(start) - 1)
    place = VirtualRedis(empty_database(), WatchedCommands(slots.namespace, book), lambda: agenda.now)
    store = place.open_at_once()
    try:
        simulation = _Simulation(slots, jobs, store, agenda, book, dice, int(seconds * 1000))
        await simulation.perform(replicas)
        states = await _states(place.url, slots.namespace, list(book.tallies))
    finally:
        await store.close()
    return book.close(jobs, start, end, replicas, states)


class _Replica:
    """One life of a replica."""

    def __init__(self, simulation: _Simulation, name: str, sweeps_at: int) -> None:
        self.name = name
        self.is_dead = False
        self._sweeps_at = sweeps_at
        self._sweep_every = simulation.sweep_every_ms
        store, clock = simulation.store, VirtualClock(lambda: simulation.agenda.now)
        planner, process = Planner(simulation.namespace), Process(name)
        dispatcher = Dispatcher(store, simulation.queues, _unheard)
        self.ticker = Ticker(store, planner, dispatcher, clock, process, _unheard)
        self.sweeper = Sweeper(store, planner, dispatcher, clock, process, _unheard, every=self._sweep_every / 1000)
        for job in simulation.jobs:
            self.ticker.add(job)

    def sweep_after(self, ms: int) -> int:
        """When its first sweep strictly after an instant is."""
        return ms + self._sweep_every - (ms - self._sweeps_at) % self._sweep_every


class _Simulation:
    """The world in which they live."""

    def __init__(
        self,
        slots: SlotQueue,
        jobs: Sequence[Job],
        store: ImmediateStore,
        agenda: Agenda,
        book: Book,
        dice: random.Random,
        takes_ms: int,
    ) -> None:
        self.namespace = slots.namespace
        self.sweep_every_ms = int(slots.sweep_every * 1000)
        self.jobs = jobs
        self.store = store
        self.agenda = agenda
        self.queues: Mapping[str, Enqueuer] = {
            kind: SimulatedQueue(kind, store, agenda, book, takes_ms) for kind in {job.enqueuer for job in jobs}
        }
        self._dice = dice
        self._living: dict[int, _Replica] = {}
        self._lives = 0
        self._no_sweep_before = 0
        self._worker = worker_process(sorted({job.task_name for job in jobs}))
        last_end = max((job.schedule.end for job in jobs), default=None)
        retention = max((job.terms.retention for job in jobs), default=0)
        self._over_at = to_ms(last_end) + retention + _DAY_MS if last_end is not None else agenda.now

    async def perform(self, replicas: int) -> None:
        """Go from event to event until nothing is open any more, or its time is over."""
        await self._enlist()
        for number in range(1, replicas + 1):
            await self._start(number)
        while (at := self._plan_next()) is not None and at < self._over_at:
            await self.agenda.step()

    def _plan_next(self) -> int | None:
        """When something happens next; where that is a sweep, it is on the agenda now."""
        at = self.agenda.next_at()
        if at is not None and at < self._no_sweep_before:
            return at
        deadline = self.store.earliest_deadline(self.namespace)
        soonest = self.agenda.now + _SHORTEST_DEADLINE_MS
        self._no_sweep_before = min(soonest, deadline) if deadline is not None else soonest
        if deadline is not None and self._living:
            deadline = max(deadline, self.agenda.now)
            swept_at, number = min((each.sweep_after(deadline), number) for number, each in self._living.items())
            if at is None or swept_at < at:
                self.agenda.at(swept_at, partial(self._sweep, number, self._living[number]))
                return swept_at
        return at

    async def _enlist(self) -> None:
        await self.store.run(self.store.verbs.enlist(self._worker))
        if self.agenda.now + _ENLIST_EVERY_MS < self._over_at:
            self.agenda.after(_ENLIST_EVERY_MS, self._enlist)

    async def _start(self, number: int) -> None:
        self._lives += 1
        replica = _Replica(self, f"replica-{number}-{self._lives}", self._dice.randrange(self.sweep_every_ms))
        self._living[number] = replica
        await self._tick(number, replica)

    async def _tick(self, number: int, replica: _Replica) -> None:
        if replica.is_dead:
            return
        try:
            await replica.ticker.tick()
        except Died:
            self._bury(number, replica)
            return
        next_at = replica.ticker.planner.next_at()
        if next_at is not None:
            late = self._dice.randrange(_LATEST_MS)
            self.agenda.at(max(next_at, self.agenda.now) + late, partial(self._tick, number, replica))

    async def _sweep(self, number: int, replica: _Replica) -> None:
        try:
            await replica.sweeper.sweep()
        except Died:
            self._bury(number, replica)

    def _bury(self, number: int, replica: _Replica) -> None:
        replica.is_dead = True
        del self._living[number]
        self.agenda.after(_RESTART_MS, partial(self._start, number))


def _unheard(event: Event) -> None:
    """What a simulated process tells is in the ledger, and no business of the application's log."""


async def _states(url: str, namespace: str, keys: Sequence[str]) -> dict[str, str]:
    site = Site.at(url, namespace)
    try:
        return dict(zip(keys, await site.reader.states(keys), strict=True))
    finally:
        await site.close()
