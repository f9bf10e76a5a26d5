"""What `slots.ops` is: the functions of `slotqueue.ops`, asked over the application's own connection."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from slotqueue.app import SlotQueue
from slotqueue.ops.account import Account, account
from slotqueue.ops.audit import Audited, audit
from slotqueue.ops.checking import Checked, check
from slotqueue.ops.processes import ReplicaSeen, WorkerSeen, replicas, workers
from slotqueue.ops.site import Site
from slotqueue.ops.slots import Recent, recent
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

    async def replicas(self) -> list[ReplicaSeen]:
        """List the replicas: see `slotqueue.ops.replicas`."""
        return await replicas(self.site)

    async def workers(self) -> list[WorkerSeen]:
        """List the guarded workers: see `slotqueue.ops.workers`."""
        return await workers(self.site)

    async def audit(self, *, since: datetime, until: datetime | None = None, job: str | None = None) -> Audited:
        """Find what should have run and did not: see `slotqueue.ops.audit`."""
        return await audit(self.site, since=since, until=until, job=job)

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
