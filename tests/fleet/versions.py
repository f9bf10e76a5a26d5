"""Replicas of several versions of an application, side by side in a time of the test's own: hours take a second.

Their tickers, sweepers and scripts are the real ones. They register every five minutes, as in production.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any, NoReturn

from slotqueue.answers import Dropped, Run
from slotqueue.dispatch import Dispatcher
from slotqueue.events import Event
from slotqueue.guard import worker_process
from slotqueue.job_builder import build_job
from slotqueue.jobs import Job
from slotqueue.messages import Message
from slotqueue.planner import Planner
from slotqueue.policy import Policy
from slotqueue.protocols import ANY_FENCE, Process, Schedule
from slotqueue.slots import from_ms, to_ms
from slotqueue.store import Commands
from slotqueue.sweeper import Sweeper
from slotqueue.testing.running import Inbox
from slotqueue.testing.virtual import ImmediateStore, VirtualClock, VirtualRedis
from slotqueue.ticker import Ticker

SWEEP_EVERY_MS = 5000
_REGISTER_EVERY_MS = 300_000


class Vanished(BaseException):
    """A replica is gone."""


def job(name: str, schedule: Schedule, *, task: str = "work", **said: Any) -> Job:
    """A job as an application says it; `args` and `kwargs` apart, all of `said` is policy."""
    call = {word: said.pop(word) for word in ("args", "kwargs") if word in said}
    return build_job(name, schedule, Policy(**{"on_crash": "complete", **said}), enqueuer="arq", task=task, **call)


class World:
    """A Redis, a time, and guarded workers of every task.

    Args:
        url: of an empty Redis.
        at: the time, aware.
    """

    def __init__(self, url: str, at: datetime) -> None:
        self.now = to_ms(at)
        self._connection = VirtualRedis(url, Commands("ran"), lambda: self.now).open_blocking()
        self.store = ImmediateStore(self._connection)
        self.redis: Any = self._connection.client
        self.dice = random.Random(1)
        self.messages: list[Message] = []
        """All that was enqueued."""

    def replica(self, name: str, *jobs: Job) -> Replica:
        """A replica that knows these jobs."""
        return Replica(self, name, jobs)

    async def have_workers(self, *tasks: str) -> None:
        """Let the tasks be guarded."""
        await self.store.run(self.store.verbs.enlist(worker_process([f"arq:{task}" for task in tasks])))

    async def lives(self, *replicas: Replica, seconds: float, step: float = 1.0) -> None:
        """Let so much time pass, in steps, while these replicas are up; the others are not."""
        until = self.now + int(seconds * 1000)
        while self.now < until:
            self.now = min(until, self.now + int(step * 1000))
            for replica in self.dice.sample(replicas, len(replicas)):
                await replica.live()

    def enqueued(self, name: str) -> list[Message]:
        """The messages of a job, oldest first."""
        return [message for message in self.messages if message.slip.key.startswith(f"ran:{name}:")]

    def record(self, key: str) -> dict[str, str]:
        found: dict[str, str] = self.redis.hgetall(f"{key}:record")
        return found

    def state(self, key: str) -> str | None:
        return self.record(key).get("state")

    async def begin(self, message: Message) -> Run | Dropped:
        """A worker begins a message."""
        verbs = self.store.verbs
        token = f"{message.slip.key} {len(self.messages)}"
        return await self.store.run(verbs.begin(message.slip, token=token, worker="worker", from_fence=ANY_FENCE))

    async def work(self, message: Message) -> bool:
        """A worker begins and finishes a message; False where it must not run."""
        run = await self.begin(message)
        if isinstance(run, Run):
            await self.store.run(self.store.verbs.finish(run))
        return isinstance(run, Run)

    def close(self) -> None:
        self._connection.close()


class Replica:
    """One replica of one version."""

    def __init__(self, world: World, name: str, jobs: tuple[Job, ...]) -> None:
        self.events: list[Event] = []
        self._world = world
        self._registered_at = 0
        self._sweeps_at = world.now + world.dice.uniform(0, SWEEP_EVERY_MS)
        clock, planner, process = VirtualClock(lambda: world.now), Planner("ran"), Process(name)
        self._inbox = Inbox("arq")
        dispatcher = Dispatcher(world.store, {"arq": self._inbox}, self.events.append)
        self.ticker = Ticker(world.store, planner, dispatcher, clock, process, self.events.append)
        self.sweeper = Sweeper(
            world.store, planner, dispatcher, clock, process, self.events.append, every=SWEEP_EVERY_MS / 1000
        )
        for each in jobs:
            self.ticker.add(each)

    async def live(self) -> None:
        """What a replica does every second or so."""
        now = self._world.now
        is_first = not self._registered_at
        if now - self._registered_at >= _REGISTER_EVERY_MS:
            self._registered_at = now
            await self.ticker.registrar.register(is_forced=not is_first)
        await self.ticker.tick()
        if now >= self._sweeps_at:
            self._sweeps_at = now + self._world.dice.uniform(0.8, 1.2) * SWEEP_EVERY_MS
            await self.sweeper.sweep()
        self._world.messages += self._inbox.messages
        self._inbox.messages.clear()

    def vanishes_before_enqueue(self) -> None:
        """From now on it dies at its next enqueue."""

        async def enqueue(_messages: object) -> NoReturn:
            raise Vanished

        setattr(self._inbox, "enqueue", enqueue)  # noqa: B010 - the place to die at

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def fire_of(message: Message) -> datetime:
    """The fire time of a message's slot."""
    return from_ms(message.slip.fire)
