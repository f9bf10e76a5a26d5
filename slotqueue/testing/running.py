"""One slot, from the claim to the end of its function, in this process."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from time import monotonic
from typing import Any

from slotqueue.answers import Known, Offer, Word
from slotqueue.app import SlotQueue
from slotqueue.dispatch import Dispatcher, message_for
from slotqueue.guard import AsyncGuard, worker_process
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Slip, Waiting
from slotqueue.ops.account import Account, account
from slotqueue.ops.site import Site
from slotqueue.process import process_id
from slotqueue.protocols import Process
from slotqueue.slots import Slot, to_ms
from slotqueue.store import Commands
from slotqueue.testing.schedules import job_named, slot_at
from slotqueue.testing.server import empty_database
from slotqueue.testing.targets import Function, target_of
from slotqueue.testing.virtual import VirtualRedis, VirtualStore


async def run(
    slots: SlotQueue,
    job: str,
    *,
    at: datetime | None = None,
    function: Function | None = None,
    ctx: Mapping[str, Any] | None = None,
    redis: str | None = None,
) -> Account:
    """Run one slot of a job: the claim, the enqueue, the guard and the function are the real ones, the queue is a list.

    Neither the application's Redis nor its broker is asked: the slot lives on a Valkey of this process, whose clock
    stands at the slot's time when it is claimed. An exception of the function ends up in the record, and in the log.

    Args:
        slots: the application.
        job: the job's name.
        at: one of its fire times, aware; past or future. Default: the newest.
        function: what to call; default: that of `@slots.job`, of a class with `@slots.worker`, or the task of Celery.
        ctx: more entries of the `ctx` that a function of arq gets.
        redis: URL of a Redis to use instead, as it is: a slot that is done there does not run again.

    Returns:
        The account of the slot: `state`, `error`, `attempts`, `last_run`, and `says`, one sentence.

    Raises:
        ConfigurationError: no such job, no such fire time, or nobody knows its function; or no server is installed.
    """
    found = job_named(slots, job)
    slot = slot_at(slots.namespace, found, at)
    target = target_of(slots, slots.enqueuers[found.enqueuer], found.task, function=function, ctx=ctx or {})
    began, fire = monotonic(), to_ms(slot.fire_time)
    first = fire + found.delay_of(fire)
    place = VirtualRedis(
        redis or empty_database(), Commands(slots.namespace), lambda: first + int((monotonic() - began) * 1000)
    )
    guard = AsyncGuard(
        worker_process([found.task_name]), place.open(), open_heartbeat_store=place.open_blocking, emit=slots.events
    )
    store = place.open()
    site = Site.at(place.url, slots.namespace)
    try:
        await store.run(place.verbs.enlist(guard.worker))
        inbox = Inbox(found.enqueuer)
        message = await _claim(store, found, slot)
        if message is not None:
            await Dispatcher(store, {inbox.kind: inbox}, slots.events).send([message])
        for each in inbox.messages:
            await target.deliver(guard, each)
        return await account(site, slot.key)
    finally:
        await guard.stop()
        await store.close()
        await site.close()


class Inbox:
    """Implements `slotqueue.protocols.Enqueuer`: a queue of this process that keeps what it is given.

    Args:
        kind: of the enqueuer that it stands for.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.messages: list[Message] = []

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`: the job's own enqueuer has checked it."""

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`."""
        self.messages += messages
        return [Accepted()] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:  # noqa: ARG002 - as the protocol has it
        """See `Enqueuer.given_up`: nothing is."""
        return {}

    async def close(self) -> None:
        """See `Enqueuer.close`."""


async def _claim(store: VirtualStore, job: Job, slot: Slot) -> Message | None:
    """Register and claim as a replica does; the message, None where the slot is decided already."""
    replica = Process(process_id("test"))
    known = [Known(job.name, job.schedule_version)]
    verbs = store.verbs
    registered = await store.run(verbs.register(replica, known, epoch=secrets.token_hex(8), is_last=True))
    claims = await store.run(verbs.claim([Offer(job, slot)], replica=replica.id, epoch=registered.epoch))
    if claims.verdicts[0].word is not Word.WON:
        return None
    fire, start = to_ms(slot.fire_time), to_ms(slot.start)
    return message_for(job, Slip(slot.key, 0, fire, start, job.task_name, job.version, job.terms_text))
