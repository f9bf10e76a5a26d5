"""`SlotQueue`: what an application holds. It takes jobs in, and assembles the parts when it starts."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from slotqueue import pings
from slotqueue.errors import ConfigurationError
from slotqueue.events import Events
from slotqueue.hooks import Hook
from slotqueue.job_builder import build_job
from slotqueue.jobs import Job
from slotqueue.life import Life
from slotqueue.own_thread import OwnThread
from slotqueue.policy import Policy
from slotqueue.protocols import Enqueuer, Schedule
from slotqueue.replica import Pulse, Replica
from slotqueue.schedules import Every
from slotqueue.slots import DEFAULT_NAMESPACE, check_namespace
from slotqueue.store import AsyncStore
from slotqueue.stored_job import StoredJob
from slotqueue.worker_systems import WorkerSystems

if TYPE_CHECKING:
    from slotqueue.ops.ops import Ops

_DRAIN_SECONDS = 0.3
C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


class SlotQueue:
    """Jobs on schedules, each slot decided once over all replicas.

    Args:
        redis: the coordinating Redis: a URL (`redis://`, `rediss://`, `unix://`, `redis+sentinel://`,
            `redis+cluster://`), or a client of redis-py, async or not, that tells how to connect and is left alone.
        enqueuer: where jobs go unless they name another.
        namespace: begins every key and message id; no ":". Two applications on one Redis take two.
        app: the application's name: a namespace that another one owns is refused. Default: nobody asks.
        defaults: policy of every job that does not say otherwise.
        replica: a name for this process in records and logs; a random part is added. Default: the host's name.
        sweep_every: between two sweeps of this replica: `timedelta` or seconds, 0.1 s to 10 min.
        claim_spread: `timedelta` or seconds: claims are delayed by a random part of it, so that the wins go round.
        replicas_to_ack: nothing is enqueued before so many replicas of Redis have the claim, and nothing runs before
            they have the begin: 0 to 10. Where they do not within 1 s, the slot is put off and tried again.
        concurrency: how many functions of this process (`@slots.job`) run at once; the others wait their turn.
        dead_letter: a task of the default enqueuer, which is given a job for each slot that ends dead or lost, with the
            arguments `slot`, `job`, `fire_time`, `state`, `reason` and `error`, all texts.
        heartbeat_url: asked for once a minute while this process ticks well, for a dead-man's switch.
        on_event: called with each event (`slotqueue.events`): one function or several, `def` or `async def`. What they
            raise is logged; a sync one must not block.

    Raises:
        ConfigurationError: names the argument and what would be right.
    """

    def __init__(  # noqa: PLR0913 - each has a default, and none belongs to another
        self,
        redis: str | object,
        *,
        enqueuer: Enqueuer | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        app: str | None = None,
        defaults: Policy | None = None,
        replica: str | None = None,
        sweep_every: timedelta | float = 5.0,
        claim_spread: timedelta | float = 0.0,
        replicas_to_ack: int = 0,
        concurrency: int = 20,
        dead_letter: str | None = None,
        heartbeat_url: str | None = None,
        on_event: Hook | Sequence[Hook] = (),
    ) -> None:
        check_namespace(namespace)
        self.redis = redis
        self.app = app
        self.namespace = namespace
        self.defaults = defaults or Policy()
        self.replica_name = replica
        self.sweep_every = _seconds("sweep_every", sweep_every, 0.1, 600)
        self.claim_spread = _seconds("claim_spread", claim_spread, 0, 3600)
        self.events = Events(*([on_event] if callable(on_event) else on_event))
        self._pings = pings.Pings(self.events)
        self._heartbeat_url = heartbeat_url
        self._beating: asyncio.Task[None] | None = None
        if heartbeat_url is not None:
            pings.check_url(heartbeat_url)
        self._store = AsyncStore(redis, namespace, app=app, replicas_to_ack=_replicas(replicas_to_ack))
        self._systems = WorkerSystems(
            redis, namespace, self.events, app=app, replicas_to_ack=replicas_to_ack, concurrency=concurrency
        )
        self._default_enqueuer = enqueuer
        self.worker_settings: list[type] = []
        """The arq settings classes that `worker` has guarded, for `slotqueue.testing`."""
        self._jobs: dict[str, Job] = {}
        self._life = Life(self._store, self._systems, self._jobs, self._assemble, self.events)
        self._own_thread = OwnThread(self)
        if enqueuer is not None:
            self._systems.take_in(enqueuer)
        self._dead_letter = _pager_job(dead_letter, enqueuer) if dead_letter is not None else None

    def __repr__(self) -> str:
        return f"SlotQueue({self._store.place.said!r}, namespace={self.namespace!r}, {len(self._jobs)} jobs)"

    # ---- jobs

    def add(  # noqa: PLR0913 - a job has as many sides
        self,
        name: str,
        schedule: Schedule,
        *,
        task: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        options: Mapping[str, Any] | None = None,
        enqueuer: Enqueuer | None = None,
        policy: Policy | None = None,
        heartbeat_url: str | None = None,
        **fields_of_policy: Any,  # noqa: ANN401 - each field has a type of its own, checked when it is merged
    ) -> Job:
        """Add a job, before or after the start.

        Args:
            name: unique here; 1 to 200 printable characters.
            schedule: `Cron(...)`, `Every(...)` or any object with their three methods.
            task: the function's name in the worker system; default: `name`.
            args, kwargs: the function's arguments.
            queue: default: the enqueuer's own.
            options: what else the worker system shall do with the messages, such as Celery's `priority` and `expires`.
            enqueuer: default: the application's.
            policy: in place of the application's defaults.
            heartbeat_url: asked for when a slot is done, by the process that ran it, for a dead-man's switch.
            **fields_of_policy: single fields of `Policy`, over `policy` or the defaults.

        Raises:
            ConfigurationError: names the job, the argument and what would be right; nothing is added.
        """
        if name in self._jobs:
            raise ConfigurationError("there is a job of this name already; remove it first", job=name, argument="name")
        chosen = enqueuer or self._default_enqueuer
        if chosen is None:
            raise ConfigurationError(
                "there is no enqueuer; give one here or to SlotQueue(enqueuer=ArqEnqueuer()), or put @slots.job(...) "
                "above a function of this process",
                job=name,
                argument="enqueuer",
            )
        self._systems.take_in(chosen)
        said = (policy or self.defaults).with_fields(name, fields_of_policy)
        job = build_job(
            name,
            schedule,
            said.with_requeue_after(getattr(chosen, "requeue_after", None)),
            enqueuer=chosen.kind,
            task=task,
            args=args,
            kwargs=kwargs,
            queue=queue,
            options=options,
        )
        chosen.check(job)
        if heartbeat_url is not None:
            self._pings.add(name, heartbeat_url)
        self._jobs[name] = job
        self._life.tell(lambda replica: replica.ticker.add(job))
        return job

    def job(
        self,
        schedule: Schedule,
        *,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        **fields_of_policy: Any,  # noqa: ANN401 - as in `add`
    ) -> Callable[[F], F]:
        """Run the decorated function on the replica that wins a slot, in its own process; needs no worker system.

        An async function runs in the ticker's event loop and must not block it; a sync one in a thread of its own.
        `current_slot()` works in both. A replica that stops lets functions go on for a second, then it cancels what is
        async, and hands its slots back: another replica begins them at its next sweep.

        Args:
            schedule: as in `add`.
            name: of the job. Default: the function's.
            args, kwargs: the function's arguments.
            policy, fields_of_policy: as in `add`; `requeue_after` is 30 s by default.

        Returns:
            A decorator that returns the function as it is.

        Raises:
            ConfigurationError: names the job, the argument and what would be right; nothing is added.
        """

        def add(function: F) -> F:
            called = name or str(getattr(function, "__name__", ""))
            if called not in self._jobs:
                self._systems.in_process.add(called, function)
            self.add(
                called,
                schedule,
                args=args,
                kwargs=kwargs,
                enqueuer=self._systems.in_process,
                policy=policy,
                **fields_of_policy,
            )
            return function

        return add

    def remove(self, name: str) -> None:
        """Remove a job from this process. Its open slots are left to replicas that still know it.

        Raises:
            ConfigurationError: there is no such job.
        """
        if self._jobs.pop(name, None) is None:
            raise ConfigurationError("there is no such job", job=name)
        self._pings.remove(name)
        self._life.tell(lambda replica: replica.ticker.remove(name))

    def check_stored(self, said: StoredJob, *, version: int = 0, since: int = 0) -> Job:
        """Check a job that is to be stored in Redis, or is, as `add` would, and make it.

        Raises:
            ConfigurationError: names the job, the argument and what would be right.
        """
        return said.build(self.enqueuers, self._default_enqueuer, version=version, since=since)

    @property
    def jobs(self) -> Mapping[str, Job]:
        """The jobs in code, by name."""
        return dict(self._jobs)

    # ---- workers

    def worker(self, settings: C) -> C:
        """Guard the functions of an arq `WorkerSettings` class; a decorator that returns the class.

        Raises:
            MissingExtra: arq is not installed.
            ConfigurationError: the class has no functions.
        """
        from slotqueue.enqueuers.arq import guard_worker  # noqa: PLC0415 - arq is an extra

        guarded = guard_worker(settings, namespace=self.namespace, open_guard=self._systems.open_guard)
        self.worker_settings.append(guarded)
        return guarded

    # ---- one pass each

    async def tick(self) -> Counter[str]:
        """Make one pass of the ticker: what is due is claimed and enqueued.

        Functions of this process that it begins end before it returns, but where `start` has been called.

        Returns:
            Counts: offered, won, taken, skipped, queued, sent, refused.

        Raises:
            StoreUnavailable: what is due stays due.
        """
        return await self._life.tick()

    async def sweep(self) -> Counter[str]:
        """Make one pass of the sweeper: open slots past their deadline are taken over.

        A running slot is taken over only after a third of its lease of unbroken contact with Redis: until then it
        counts as `later`, and a process that lives for one pass must sweep again.

        Returns:
            Counts: overdue, and what became of them.

        Raises:
            StoreUnavailable: ask again.
        """
        return await self._life.sweep()

    # ---- the loops

    async def start(self) -> None:
        """Start ticking and sweeping in this event loop. Redis may be down: the loops keep trying.

        With `SLOTQUEUE_DISABLED=1` in the environment nothing starts, which is logged once.
        """
        await self._life.start()
        if self._heartbeat_url is not None and self.pulse.is_ticking:
            self._beating = asyncio.create_task(self._beat(self._heartbeat_url), name="slotqueue-pings")

    async def stop(self) -> None:
        """Finish the enqueue in hand, hand back what functions of this process run, leave the registry and close.

        Takes 5 s at most, also while Redis is unreachable.
        """
        await self._life.stop()
        await self._stop_beating()
        await self.events.hooks.drain(_DRAIN_SECONDS)

    async def hand_back(self) -> None:
        """Hand back the slots that functions of this process run, and begin no more of them; within a second or two.

        `stop` does this too. It lets a pass by hand, which waits for its functions, come to an end.
        """
        await self._life.hand_back()

    async def run(self, stopping: asyncio.Event | None = None) -> None:
        """Tick and sweep until cancelled, or until `stopping` is set; with `SLOTQUEUE_DISABLED=1` only wait for that.

        Raises:
            Exception: a loop ended by an error that nobody foresaw; a ticker never dies silently.
        """
        await self.start()
        try:
            await self._life.wait(stopping)
        finally:
            await self.stop()

    async def close(self) -> None:
        """Leave the registry and close connections; `stop` does this too. Afterwards it may start again."""
        await self._life.close()
        await self.events.hooks.drain(_DRAIN_SECONDS)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:  # noqa: ARG002 - ASGI frameworks give it
        """Tick while an ASGI application serves: `FastAPI(lifespan=slots.lifespan)`, or `async with` in your own one.

        Redis may be down: the application starts all the same. Should the ticker ever die, that is logged as critical
        and `is_ready` says no, while the application goes on to serve.
        """
        async with self:
            yield

    def start_thread(self) -> None:
        """Tick in a thread of this process, for applications without an event loop: Flask, Django. Again is harmless.

        A process that is forked later has no such thread; call it there. Where gunicorn preloads the application, it
        starts in each worker by itself. The thread stops when the process exits.
        """
        if not self._life.is_disabled():
            self._own_thread.start()

    def stop_thread(self) -> bool:
        """Stop the thread, within 5 s, as `stop` does; whether it has ended."""
        return self._own_thread.stop()

    @property
    def is_ready(self) -> bool:
        """Whether the ticker has made a pass within the last 10 s: connected, registered, ticking."""
        return self._life.is_ready

    @property
    def pulse(self) -> Pulse:
        """How long ago this process ticked, for probes."""
        return self._life.pulse

    @property
    def enqueuers(self) -> Mapping[str, Enqueuer]:
        """The enqueuers by kind."""
        return self._systems.enqueuers

    @property
    def store(self) -> AsyncStore:
        """The coordinating Redis, for `slotqueue.ops`."""
        return self._store

    @cached_property
    def ops(self) -> Ops:
        """What an operator asks and does."""
        from slotqueue.ops.ops import Ops  # noqa: PLC0415 - loaded where it is used: a replica needs none of it

        return Ops(self)

    async def _beat(self, url: str) -> None:
        """Ask for the heartbeat's URL while this process ticks."""
        while True:
            while not self.is_ready:  # noqa: ASYNC110 - readiness has no event of its own
                await asyncio.sleep(0.5)
            self._pings.send(url)
            await asyncio.sleep(pings.PING_SECONDS)

    async def _stop_beating(self) -> None:
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
        await asyncio.to_thread(self._pings.close)

    def _assemble(self) -> Replica:
        return Replica(
            self._store,
            self.enqueuers,
            self.events,
            default=self._default_enqueuer,
            namespace=self.namespace,
            name=self.replica_name,
            sweep_every=self.sweep_every,
            spread=self.claim_spread,
            dead_letter=self._dead_letter,
        )


def _pager_job(task: str, enqueuer: Enqueuer | None) -> Job:
    """The job that is told of dead letters."""
    if enqueuer is None:
        raise ConfigurationError(
            "there is no enqueuer that could be given the task; give one to SlotQueue(enqueuer=...)",
            argument="dead_letter",
        )
    policy = Policy(on_crash="complete", on_failure="again")
    job = build_job("dead-letter", Every(days=1), policy, enqueuer=enqueuer.kind, task=task)
    enqueuer.check(job)
    return job


def _seconds(name: str, value: timedelta | float, least: float, most: float) -> float:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ConfigurationError(f"{value!r} is not between {least:g} s and {most:g} s", argument=name)
    return float(value)


def _replicas(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10:
        raise ConfigurationError(f"{value!r} is no number of replicas from 0 to 10", argument="replicas_to_ack")
    return value
