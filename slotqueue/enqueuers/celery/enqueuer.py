"""`CeleryEnqueuer`: sends task messages by name, off the event loop, and guards the workers of its application."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any

from slotqueue.enqueuers.celery.message import check_message
from slotqueue.enqueuers.celery.places import place_of, queue_for
from slotqueue.enqueuers.celery.publisher import Publisher
from slotqueue.enqueuers.celery.worker import OpenGuard, guard_app
from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Refused, Waiting

_RESTORE_SECONDS = 100
"""How late kombu may be to restore what nobody acknowledged."""
_PATIENCE_SECONDS = 4.5
"""Every call ends within this, whatever the broker does."""


class CeleryEnqueuer:
    """Implements `slotqueue.protocols.Enqueuer` for Celery.

    Caveats: two messages with one task id both run in Celery, so only a guarded worker makes a repeat harmless. The
    guard is in every worker that imports the module with the `SlotQueue`, whichever pool it has; a message that a
    RabbitMQ queue itself lets expire is seen by nobody, and waits for the sweep.

    Args:
        app: the Celery application. Its broker, routes and serializer are used; no task needs to be imported here.
        kind: stands before task names in records; another one for a second application.
    """

    ahead_seconds = 0.02
    """For this long messages wait ready-made in the thread that publishes them."""

    def __init__(self, app: Any, *, kind: str = "celery") -> None:  # noqa: ANN401 - Celery is untyped
        self.app = app
        self.kind = kind
        self._sender: _Sender | None = None

    def __repr__(self) -> str:
        return f"CeleryEnqueuer({self.app!r})"

    def guard_workers(self, namespace: str, open_guard: OpenGuard) -> None:
        """Guard the slots of a namespace in every worker of the application that imports this."""
        guard_app(self.app, namespace=namespace, open_guard=open_guard, kind=self.kind)

    @property
    def place(self) -> str:
        """Where its broker is, without a password: "host:port/database", "host:port/virtual host"; or ""."""
        try:
            return place_of(self.app.connection_for_write())
        except (ValueError, KeyError):  # no URL that can be read, of which the first message says so
            return ""

    def queue_of(self, job: Job) -> str | None:
        """Name the queue that a job is sent to, by the application's routes; None where an exchange decides that."""
        options = {**job.options, **({"queue": job.queue} if job.queue is not None else {})}
        return queue_for(self.app, job.task, options, job.args, job.kwargs)

    @property
    def seconds_a_message(self) -> float | None:
        """How long a message takes in a large batch, about; of AMQP, whose broker confirms each, that is measured."""
        return 0.0004 if self._is_redis else None

    def prepare(self) -> None:
        """Connect to the broker, off the loop: the first slot that this process wins is not to be late for it."""
        self._here().connect()

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`."""
        check_message(job, self.app.conf.task_serializer)
        self._check_retention(job)

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`."""
        sender = self._here()
        sending = sender.submit(messages)
        waiting = asyncio.wrap_future(sending)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await asyncio.shield(waiting)
        except TimeoutError:
            is_unsent = sending.cancel()
            if not is_unsent:  # leave that thread to its fate: each of its waits is bounded
                sender.abandon()
                self._sender = None
            waiting.add_done_callback(_hear)
            return [Refused("Celery's broker did not answer in time", is_sent_possible=not is_unsent)] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:  # noqa: ARG002
        """See `Enqueuer.given_up`: Celery's workers say themselves what they give up; there is nothing to look up."""
        return {}

    async def close(self) -> None:
        """Close the connection to the broker."""
        sender, self._sender = self._sender, None
        if sender is not None and sender.pid == os.getpid():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await asyncio.shield(asyncio.wrap_future(sender.close()))
            sender.abandon()

    def _check_retention(self, job: Job) -> None:
        """A message that Redis delivers again must still find the done marker."""
        needed = self._redelivery_seconds
        if job.terms.retention < needed * 1000:
            raise ConfigurationError(
                f"a message that the broker delivers again after its visibility timeout would find no done marker; "
                f"use {needed:g} s or more",
                job=job.name,
                argument="retention",
            )

    @cached_property
    def _redelivery_seconds(self) -> float:
        """How late the broker may deliver a message again; asked once, by the first job: the settings answer slowly."""
        if not self._is_redis:
            return 0.0
        return float((self.app.conf.broker_transport_options or {}).get("visibility_timeout", 3600) + _RESTORE_SECONDS)

    @cached_property
    def _is_redis(self) -> bool:
        return str(self.app.conf.broker_read_url or "").startswith(("redis", "sentinel"))

    def _here(self) -> _Sender:
        """The sender of this process: threads and sockets do not survive a fork."""
        if self._sender is None or self._sender.pid != os.getpid():
            self._sender = _Sender(self.app)
        return self._sender


class _Sender:
    """One thread with one connection: messages go out in the order in which they came."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401
        self.pid = os.getpid()
        self._publisher = Publisher(app)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slotqueue publisher")

    def submit(self, messages: Sequence[Message]) -> Future[list[Delivery]]:
        return self._thread.submit(self._publisher.publish, messages)

    def connect(self) -> None:
        self._thread.submit(self._publisher.connect)

    def close(self) -> Future[None]:
        return self._thread.submit(self._publisher.close)

    def abandon(self) -> None:
        self._thread.shutdown(wait=False)


def _hear(late: asyncio.Future[list[Delivery]]) -> None:
    """Take what came too late, so that nobody warns that it was never asked for."""
    if not late.cancelled():
        late.exception()
