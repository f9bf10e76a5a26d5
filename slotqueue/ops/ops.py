"""What `slots.ops` is: the functions of `slotqueue.ops`, asked over the application's own connection."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from slotqueue.app import SlotQueue
from slotqueue.ops.account import Account, account
from slotqueue.ops.checking import Checked, check
from slotqueue.ops.site import Site
from slotqueue.ops.slots import Recent, recent
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

    async def recent(
        self, *, job: str | None = None, state: SlotState | Collection[SlotState] | None = None, limit: int = 20
    ) -> Recent:
        """List the newest slots: see `slotqueue.ops.recent`."""
        return await recent(self.site, job=job, state=state, limit=limit)

    async def account(self, key: str) -> Account:
        """Tell what happened to one slot: see `slotqueue.ops.account`."""
        return await account(self.site, key)

    async def check(self, *, now: datetime | None = None) -> Checked:
        """Find what would go wrong: see `slotqueue.ops.check`."""
        return await check(self.site, now=now)
