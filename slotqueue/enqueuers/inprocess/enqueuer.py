"""`InProcessEnqueuer`: its queue is a line in this process, and the replica is its own guarded worker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from slotqueue.enqueuers.inprocess.functions import Function
from slotqueue.enqueuers.inprocess.line import Line
from slotqueue.errors import ConfigurationError, StoreUnavailable
from slotqueue.guard import AsyncGuard, worker_process
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Refused, Waiting
from slotqueue.protocols import Process

_CLOSE_SECONDS = 0.5
OpenGuard = Callable[[Process], AsyncGuard]


class InProcessEnqueuer:
    """Implements `slotqueue.protocols.Enqueuer` for functions of this process: see `SlotQueue.job`.

    Caveats: an async function shares the event loop with the ticker, so it must not block it. A sync function has a
    thread of its own, which nobody can end: one that outlives its lease or its replica's stop goes on until it ends
    or the process does.

    Args:
        concurrency: how many functions run at once, threads included, 1 to 10 000; the others wait their turn.

    Raises:
        ConfigurationError: another concurrency.
    """

    kind = "inprocess"
    seconds_a_message = 0.0001
    requeue_after = timedelta(seconds=30)
    """In place of the policy's default, also under `on_crash="skip"`: the line is gone with its process, and what
    never began may always be begun."""

    def __init__(self, *, concurrency: int = 20) -> None:
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= 10_000:
            raise ConfigurationError(f"{concurrency!r} is no number from 1 to 10 000", argument="concurrency")
        self.concurrency = concurrency
        self._functions: dict[str, Function] = {}
        self._namespace = ""
        self._open_guard: OpenGuard | None = None
        self._crew: _Crew | None = None

    def __repr__(self) -> str:
        return f"InProcessEnqueuer(concurrency={self.concurrency}, {len(self._functions)} functions)"

    def run_here(self, namespace: str, open_guard: OpenGuard) -> None:
        """Serve an application: guard its slots.

        Raises:
            ConfigurationError: it serves another one.
        """
        if self._open_guard is not None and self._namespace != namespace:
            raise ConfigurationError(
                f"it runs the functions of the namespace {self._namespace!r}; make another one", argument="enqueuer"
            )
        self._namespace, self._open_guard = namespace, open_guard

    def add(self, name: str, call: Callable[..., object]) -> None:
        """Know a function by this name from now on; jobs name it as their task.

        Raises:
            ConfigurationError: it cannot be run as a job.
        """
        self._functions[name] = Function(name, call)

    def function_of(self, task: str) -> Function | None:
        """The function by this name, for `slotqueue.testing`."""
        return self._functions.get(task)

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`."""
        function = self._functions.get(job.task)
        if function is None:
            raise ConfigurationError(
                f"no function of this process is called {job.task!r}; put @slots.job(...) above it",
                job=job.name,
                argument="task",
            )
        if job.queue is not None or job.options:
            argument = "queue" if job.queue is not None else "options"
            raise ConfigurationError("functions of this process have neither", job=job.name, argument=argument)
        function.check(job)

    async def start(self) -> None:
        """Be there as a guarded worker from now on; returns at once, also while Redis is away."""
        _ = self._here()

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`."""
        crew = self._here()
        if crew.line.is_stopping:
            return [Refused("this replica stops")] * len(messages)
        try:
            await crew.enlist(self._tasks())
        except StoreUnavailable as error:
            return [Refused(f"this process could not say that it knows the task: {error}")] * len(messages)
        return [self._take(crew, message) for message in messages]

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:  # noqa: ARG002
        """See `Enqueuer.given_up`: a function says itself how it ended; there is nothing to look up."""
        return {}

    async def wait_until_idle(self) -> None:
        """Wait until nothing waits and nothing runs in this event loop."""
        if self._crew is not None and self._crew.is_here:
            await self._crew.line.wait_until_idle()

    async def stop(self, within: float) -> None:
        """Hand back what does not end by itself, and leave; nothing begins any more before `close`.

        Takes about so many seconds at most.
        """
        if self._crew is not None and self._crew.is_here and not self._crew.line.is_stopping:
            await self._crew.leave(within)

    async def close(self) -> None:
        """See `Enqueuer.close`."""
        await self.stop(_CLOSE_SECONDS)
        self._crew = None

    def _tasks(self) -> tuple[str, ...]:
        return tuple(f"{self.kind}:{name}" for name in self._functions)

    def _take(self, crew: _Crew, message: Message) -> Delivery:
        function = self._functions.get(message.task)
        if function is None:
            return Refused(f"this process has no function {message.task!r}")
        return Accepted(is_new=crew.line.take(message, function))

    def _here(self) -> _Crew:
        """The crew of this process and event loop: neither tasks nor sockets survive a fork."""
        if self._crew is None or not self._crew.is_here:
            if self._open_guard is None:
                raise ConfigurationError("no SlotQueue has this enqueuer", argument="enqueuer")
            guard = self._open_guard(worker_process(self._tasks(), worker=self.kind))
            self._crew = _Crew(guard, self.concurrency)
            guard.start()
        return self._crew


class _Crew:
    """What runs functions in one event loop of one process: the line, and the guard that reports on it."""

    def __init__(self, guard: AsyncGuard, concurrency: int) -> None:
        self.line = Line(guard, concurrency)
        self._guard = guard
        self._owner = (os.getpid(), asyncio.get_running_loop())
        self._enlisted: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether this is its process and its event loop."""
        return self._owner == (os.getpid(), asyncio.get_running_loop())

    async def enlist(self, tasks: tuple[str, ...]) -> None:
        """See to it that these tasks count as guarded before the first slot of them is confirmed.

        Raises:
            StoreUnavailable: ask again.
        """
        if tasks != self._enlisted:
            await self._guard.enlist(tasks)
            self._enlisted = tasks

    async def leave(self, within: float) -> None:
        """Hand back what does not end by itself, and say that this worker goes."""
        until = asyncio.get_running_loop().time() + within
        try:
            async with asyncio.timeout_at(until):
                unrun = await self.line.stop(within * 0.8)
                await self._guard.give_back(unrun, "the replica stops")
        except (StoreUnavailable, TimeoutError):
            pass  # the sweep will find them by their deadline
        await self._guard.stop(max(0.2, until - asyncio.get_running_loop().time()))
