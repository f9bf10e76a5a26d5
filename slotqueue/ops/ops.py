"""What `slots.ops` is: the functions of `slotqueue.ops`, asked over the application's own connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from slotqueue.app import SlotQueue
from slotqueue.ops.account import Account, account
from slotqueue.ops.audit import Audited, audit
from slotqueue.ops.backfill import MOST_SLOTS, Progress, Range, backfill, survey
from slotqueue.ops.checking import Checked, check
from slotqueue.ops.forgetting import Forgotten, forget
from slotqueue.ops.health import Health, health
from slotqueue.ops.in_force import InForce, in_force
from slotqueue.ops.letters import discard_letters, letters, retry_letters
from slotqueue.ops.observing import Observed, observe
from slotqueue.ops.orders import Order, rerun, retry, trigger
from slotqueue.ops.pauses import Pause, pause, pauses, resume
from slotqueue.ops.processes import ReplicaSeen, WorkerSeen, replicas, workers
from slotqueue.ops.site import Site
from slotqueue.ops.slots import Recent, SlotRow, recent
from slotqueue.ops.status import Status, status
from slotqueue.ops.stored import Stored, put, remove, stored
from slotqueue.policy import Policy
from slotqueue.schedules import Cron, Every
from slotqueue.slots import SlotState


class Ops:
    """What an operator asks of a running application; every method is a coroutine.

    Each stands for the function of its name in `slotqueue.ops`, which also works without code: over a `Site.at(url,
    namespace)`. They use the connection that `SlotQueue.stop` and `SlotQueue.close` close.

    Args:
        app: whose Redis is asked, and whose schedules are known.
    """

    def __init__(self, app: SlotQueue) -> None:
        self.site = Site(app.store, app.namespace, app)

    async def status(self, *, job: str | None = None) -> Status:
        """Tell how each job stands: see `slotqueue.ops.status`."""
        return await status(self.site, job=job)

    async def recent(
        self,
        *,
        job: str | None = None,
        state: SlotState | Collection[SlotState] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> Recent:
        """List the newest slots: see `slotqueue.ops.recent`."""
        return await recent(self.site, job=job, state=state, since=since, until=until, limit=limit)

    async def account(self, key: str) -> Account:
        """Tell what happened to one slot: see `slotqueue.ops.account`."""
        return await account(self.site, key)

    async def in_force(self) -> InForce:
        """Tell the schedules in code and of stored jobs: see `slotqueue.ops.in_force`."""
        return await in_force(self.site)

    async def replicas(self) -> list[ReplicaSeen]:
        """List the replicas: see `slotqueue.ops.replicas`."""
        return await replicas(self.site)

    async def workers(self) -> list[WorkerSeen]:
        """List the guarded workers: see `slotqueue.ops.workers`."""
        return await workers(self.site)

    async def audit(self, *, since: datetime, until: datetime | None = None, job: str | None = None) -> Audited:
        """Find what should have run and did not: see `slotqueue.ops.audit`."""
        return await audit(self.site, since=since, until=until, job=job)

    async def retry(self, key: str, *, by: str | None = None) -> Order:
        """Bring a dead, lost, missed or skipped slot back: see `slotqueue.ops.retry`."""
        return await retry(self.site, key, by=by)

    async def rerun(self, key: str, *, by: str | None = None) -> Order:
        """Repeat the work of a done slot: see `slotqueue.ops.rerun`."""
        return await rerun(self.site, key, by=by)

    async def trigger(self, job: str, *, by: str | None = None) -> Order:
        """Run a job now, as a slot of its own: see `slotqueue.ops.trigger`."""
        return await trigger(self.site, job, by=by)

    async def survey(self, job: str, start: datetime, end: datetime, *, most: int = MOST_SLOTS) -> Range:
        """Look what a backfill would find: see `slotqueue.ops.survey`."""
        return await survey(self.site, job, start, end, most=most)

    async def backfill(
        self,
        found: Range,
        *,
        max_open: int | None = None,
        rate: float | None = None,
        by: str | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        stopping: asyncio.Event | None = None,
    ) -> Progress:
        """Run past slots, oldest first: see `slotqueue.ops.backfill`."""
        return await backfill(
            self.site, found, max_open=max_open, rate=rate, by=by, on_progress=on_progress, stopping=stopping
        )

    async def pauses(self) -> tuple[Pause, ...]:
        """List the pauses: see `slotqueue.ops.pauses`."""
        return await pauses(self.site)

    async def pause(
        self, jobs: Sequence[str] | None, *, until: datetime | None = None, why: str = "", by: str | None = None
    ) -> tuple[Pause, ...]:
        """Pause jobs, None for all: see `slotqueue.ops.pause`."""
        return await pause(self.site, jobs, until=until, why=why, by=by)

    async def resume(self, jobs: Sequence[str] | None, *, by: str | None = None) -> tuple[str | None, ...]:
        """Let paused jobs go on: see `slotqueue.ops.resume`."""
        return await resume(self.site, jobs, by=by)

    async def letters(self, *, job: str | None = None, limit: int = 20) -> tuple[tuple[SlotRow, ...], int]:
        """List and count dead letters: see `slotqueue.ops.letters`."""
        return await letters(self.site, job=job, limit=limit)

    async def retry_letters(self, *, job: str | None = None, by: str | None = None) -> tuple[Order, ...]:
        """Bring dead letters back: see `slotqueue.ops.retry_letters`."""
        return await retry_letters(self.site, job=job, by=by)

    async def discard_letters(self, *, job: str | None = None, by: str | None = None) -> tuple[str, ...]:
        """Take dead letters from the list: see `slotqueue.ops.discard_letters`."""
        return await discard_letters(self.site, job=job, by=by)

    async def forget(self, job: str, *, by: str | None = None) -> Forgotten:
        """Forget a job that no replica knows any more: see `slotqueue.ops.forget`."""
        return await forget(self.site, job, by=by)

    async def observe(self) -> Observed:
        """Tell how the namespace looks in numbers: see `slotqueue.ops.observe`."""
        return await observe(self.site)

    async def health(self, *, host: str | None = None, of_workers: bool = False) -> Health:
        """Tell whether a host has a replica that ticks: see `slotqueue.ops.health`."""
        return await health(self.site, host=host, of_workers=of_workers)

    async def check(self, *, now: datetime | None = None) -> Checked:
        """Find what would go wrong: see `slotqueue.ops.check`."""
        return await check(self.site, now=now)

    async def put(  # noqa: PLR0913 - a job has as many sides
        self,
        name: str,
        schedule: Cron | Every | str,
        *,
        task: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        options: Mapping[str, Any] | None = None,
        enqueuer: str | None = None,
        policy: Policy | None = None,
        version: int | None = None,
        by: str | None = None,
        **fields_of_policy: Any,  # noqa: ANN401 - each field has a type of its own, checked when it is merged
    ) -> Stored:
        """Store a job in Redis, or another version of it: see `slotqueue.ops.put`."""
        return await put(
            self.site,
            name,
            schedule,
            task=task,
            args=args,
            kwargs=kwargs,
            queue=queue,
            options=options,
            enqueuer=enqueuer,
            policy=policy,
            version=version,
            by=by,
            **fields_of_policy,
        )

    async def remove(self, name: str, *, version: int | None = None) -> int:
        """Remove a job that is stored in Redis: see `slotqueue.ops.remove`."""
        return await remove(self.site, name, version=version)

    async def stored(self) -> tuple[Stored, ...]:
        """List the jobs that are stored in Redis: see `slotqueue.ops.stored`."""
        return await stored(self.site)
