"""Lazy arguments: a `BeatLazyFunc` is evaluated by the replica that won the slot, just before it enqueues."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from celery.beat import BeatLazyFunc

from slotqueue.enqueuers.celery import CeleryEnqueuer
from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Refused, Waiting


class LazyEnqueuer:
    """Implements `slotqueue.protocols.Enqueuer`: evaluates lazy arguments, then asks another enqueuer.

    They are evaluated in a thread: they may query a database, and Django refuses that in an event loop.

    Args:
        enqueuer: takes the messages.
    """

    def __init__(self, enqueuer: CeleryEnqueuer) -> None:
        self.enqueuer = enqueuer
        self.kind = enqueuer.kind

    @property
    def place(self) -> str:
        """Where the broker is, without a password."""
        return self.enqueuer.place

    def queue_of(self, job: Job) -> str | None:
        """Name the queue that a job is sent to; None where an exchange decides that."""
        return self.enqueuer.queue_of(job)

    @property
    def seconds_a_message(self) -> float | None:
        """How long a message takes in a large batch, as far as that is known."""
        return self.enqueuer.seconds_a_message

    @property
    def ahead_seconds(self) -> float:
        """How long before its time a message is wanted."""
        return self.enqueuer.ahead_seconds

    def prepare(self) -> None:
        """Get ready for the first message."""
        self.enqueuer.prepare()

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`; what a lazy argument will be is not known yet."""
        if _has_lazy(job):
            args = tuple(arg for arg in job.args if not isinstance(arg, BeatLazyFunc))
            kwargs = {name: value for name, value in job.kwargs.items() if not isinstance(value, BeatLazyFunc)}
            job = replace(job, args=args, kwargs=kwargs)
        self.enqueuer.check(job)

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`; a message whose lazy argument raises is refused, and tried again by the sweep."""
        answers: dict[int, Delivery] = {}
        ready: dict[int, Message] = {}
        for at, message in enumerate(messages):
            if not _has_lazy(message):
                ready[at] = message
                continue
            if message.not_before:  # what it is to say may depend on the hour, or the day
                await asyncio.sleep(message.not_before.monotonic - monotonic())
            try:
                ready[at] = await asyncio.to_thread(_evaluated, message)
            except Exception as error:  # noqa: BLE001 - anybody's code; the others shall go out
                answers[at] = Refused(f"a lazy argument raised {type(error).__name__}: {error}")
        if ready:
            answers.update(zip(ready, await self.enqueuer.enqueue(list(ready.values())), strict=True))
        return [answers[at] for at in range(len(messages))]

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        """See `Enqueuer.given_up`."""
        return await self.enqueuer.given_up(waiting)

    async def close(self) -> None:
        """See `Enqueuer.close`."""
        await self.enqueuer.close()


def _has_lazy(said: Message | Job) -> bool:
    return any(isinstance(value, BeatLazyFunc) for value in (*said.args, *said.kwargs.values()))


def _evaluated(message: Message) -> Message:
    return replace(
        message,
        args=tuple(_value(arg) for arg in message.args),
        kwargs={name: _value(value) for name, value in message.kwargs.items()},
    )


def _value(argument: Any) -> Any:  # noqa: ANN401 - arguments are anything
    return argument() if isinstance(argument, BeatLazyFunc) else argument
