"""The replica's side of the tests of worker systems: it claims, enqueues and sweeps by hand, one step at a time."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import redis.asyncio

from slotqueue.answers import Known, Offer, Takeover, Word
from slotqueue.dispatch import Dispatcher, message_for
from slotqueue.jobs import Job
from slotqueue.messages import Message, Refused, Slip
from slotqueue.policy import Policy
from slotqueue.protocols import Enqueuer, Process
from slotqueue.slots import Slot, from_ms, key_at, parse_key, to_ms
from slotqueue.store import AsyncStore
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.enqueuers.systems import System

PERIOD = timedelta(hours=1)
SHORT = 1.5
"""A lease that a test waits for, seconds; others outlive any pause of the machine."""
_names = itertools.count(1)


class Bench:
    """A replica without loops.

    Args:
        store_url: the coordinating Redis.
        effects_url: where tasks leave their marks, see `effects`.
        enqueuer: under test.
    """

    def __init__(self, store_url: str, effects_url: str, enqueuer: Enqueuer, *, namespace: str = "ran") -> None:
        self.namespace = namespace
        self.enqueuer = enqueuer
        self.events: list[object] = []
        self.store = AsyncStore(store_url, namespace)
        self.redis = redis.asyncio.Redis.from_url(store_url, decode_responses=True, socket_timeout=5)
        self._effects = redis.asyncio.Redis.from_url(effects_url, decode_responses=True, socket_timeout=5)
        self._dispatcher = Dispatcher(self.store, {enqueuer.kind: enqueuer}, self.events.append)
        self._jobs: dict[str, Job] = {}
        self._me = Process("replica-1")

    async def close(self) -> None:
        await self.store.close()
        await self.enqueuer.close()
        await self.redis.aclose()
        await self._effects.aclose()

    # ---- what a replica does

    def job(self, task: str, *, kwargs: dict[str, Any] | None = None, args: tuple[Any, ...] = (), **policy: Any) -> Job:
        fields = {"on_crash": "complete", "lease": 60, **policy}
        name = f"job-{next(_names)}"
        job = Job(
            name=name,
            schedule="hourly",
            task=task,
            args=args,
            kwargs=kwargs or {},
            enqueuer=self.enqueuer.kind,
            policy=Policy(**fields),
            period=PERIOD,
        )
        self._jobs[name] = job
        return job

    async def claim(self, task: str, **about: Any) -> Message:
        """Claim a slot of a new job; its message is not enqueued yet."""
        word, message = await self.claim_of(self.job(task, **about))
        assert word is Word.WON
        return message

    async def claim_of(self, job: Job, minutes_ago: int = 0) -> tuple[Word, Message]:
        """Claim the slot of a job at the last whole minute, or at an earlier one; its message is not enqueued yet."""
        known = [Known(job.name, job.schedule_version)]
        registered = await self.store.run(self.store.verbs.register(self._me, known, epoch="", is_last=True))
        fire_time = from_ms((registered.now // 60_000 - minutes_ago) * 60_000)
        slot = Slot(key_at(self.namespace, job.name, fire_time), job.name, fire_time, fire_time - PERIOD)
        claims = await self.store.run(
            self.store.verbs.claim([Offer(job, slot)], replica=self._me.id, epoch=registered.epoch)
        )
        (verdict,) = claims.verdicts
        start, fire = to_ms(slot.start), to_ms(fire_time)
        slip = Slip(slot.key, 0, fire, start, job.task_name, job.version, job.terms.text)
        return verdict.word, message_for(job, slip)

    async def fire(self, task: str, *, becomes: str = "queued", **about: Any) -> str:
        """Claim a slot of a new job and enqueue it; returns its key."""
        message = await self.claim(task, **about)
        for _ in range(4):  # a broker that this machine keeps from answering in time refuses, and nothing was sent
            answers = await self._dispatcher.enqueue([message])
            if not isinstance(answers[0], Refused) or answers[0].is_sent_possible:
                break
        counts = await self._dispatcher.confirm([message], answers)
        # A worker may begin before the confirm: then the confirm is stale, and nothing is amiss.
        assert counts[Word(becomes)] + counts[Word.STALE] == 1, (counts, self.events)
        return message.slip.key

    async def sweep(self) -> list[Takeover]:
        """One pass of a sweeper in good contact: take over what is overdue, then look up what is waiting."""
        overdue = await self.store.run(self.store.verbs.overdue(100))
        jobs = [self._jobs[parse_key(key).job] for key in overdue.keys]
        tasks = [job.task_name for job in jobs]
        command = self.store.verbs.take_over(overdue.keys, tasks, replica=self._me.id, contact_ms=10**9)
        takeovers = await self.store.run(command)
        pairs = zip(jobs, takeovers, strict=True)
        messages = [message_for(job, found.slip, found.before) for job, found in pairs if found.slip]
        if messages:
            await self._dispatcher.send(messages)
        await self.look_up()
        return takeovers

    async def look_up(self) -> None:
        keys = await self.store.run(self.store.verbs.open_keys(0, 100))
        waiting = await self.store.run(self.store.verbs.waiting(keys))
        numbers = {each.key: each.n for each in waiting}
        for key, why in (await self.enqueuer.given_up(waiting)).items():
            await self.store.run(self.store.verbs.reject(key, numbers[key], why))

    async def let_deadline_pass(self, key: str) -> None:
        """Make an open slot overdue now: some deadlines are minutes away."""
        assert await self.redis.zadd(f"{self.namespace}:open", {key: 1}, xx=True, ch=True)

    async def let_go(self) -> None:
        """Let every `slow` task end, those to come as well."""
        await self._effects.set("go", 1)

    # ---- what became of it

    async def record(self, key: str) -> dict[str, str]:
        found: dict[str, str] = await self.redis.hgetall(f"{key}:record")
        return found

    async def state(self, key: str) -> str | None:
        return (await self.record(key)).get("state")

    async def wait_for(self, key: str, *states: str, sweeping: bool = False, within: float = 40.0) -> dict[str, str]:
        """Wait until the slot is in one of these states, and return its record."""

        async def record() -> dict[str, str] | None:
            if sweeping:
                await self.sweep()
            found = await self.record(key)
            return found if found.get("state") in states else None

        try:
            reached: dict[str, str] = await eventually(record, within=within)
        except AssertionError:
            raise AssertionError(f"never {states}: {await self.record(key)}, {await self.effects(key)}") from None
        return reached

    async def has_left_arq(self, key: str) -> bool:
        """Whether arq has put the message away, a moment after the slot ended; a copy sent before goes with it."""
        return not await self._effects.exists(f"arq:job:{key}")

    async def is_done(self, key: str) -> bool:
        return bool(await self.redis.exists(f"{key}:done"))

    async def effects(self, key: str) -> list[str]:
        """What tasks have marked for this message, in order: "began", "ended", ..."""
        return [each["what"] for each in await self.marks(key)]

    async def marks(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(each) for each in await self._effects.lrange(f"effects:{key}", 0, -1)]

    async def wait_for_effect(self, key: str, *expected: str, sweeping: bool = False, within: float = 40.0) -> None:
        """Wait until exactly these marks are there, in this order."""

        async def are_there() -> bool:
            if sweeping:
                await self.sweep()
            return await self.effects(key) == list(expected)

        try:
            await eventually(are_there, within=within)
        except AssertionError:
            raise AssertionError(f"never {expected}: {await self.effects(key)}, {await self.record(key)}") from None


@asynccontextmanager
async def bench_for(system: System) -> AsyncIterator[Bench]:
    """The replica's side of a worker system."""
    bench = Bench(system.store_url, system.effects_url, system.enqueuer())
    try:
        yield bench
    finally:
        await bench.close()
