"""The worker systems of an application: their enqueuers by kind, and what connects the guard to their workers."""

from __future__ import annotations

from slotqueue.enqueuers.inprocess import InProcessEnqueuer
from slotqueue.errors import ConfigurationError
from slotqueue.events import Emit
from slotqueue.guard import AsyncGuard, SyncGuard
from slotqueue.protocols import Enqueuer, Process
from slotqueue.store import AsyncStore, BlockingStore


class WorkerSystems:
    """What an application enqueues to.

    Args:
        redis: the coordinating Redis: a URL, or a client of redis-py.
        namespace: what every key begins with.
        emit: takes the events of the guards.
        app: the application's name, None where it does not say.
        replicas_to_ack: how many replicas of Redis must acknowledge a begin.
        concurrency: how many functions of this process run at once.
    """

    def __init__(
        self,
        redis: object,
        namespace: str,
        emit: Emit,
        *,
        app: str | None = None,
        replicas_to_ack: int = 0,
        concurrency: int = 20,
    ) -> None:
        self.redis = redis
        self.app = app
        self.replicas_to_ack = replicas_to_ack
        self.namespace = namespace
        self.emit = emit
        self.enqueuers: dict[str, Enqueuer] = {}
        """By kind."""
        self.in_process = InProcessEnqueuer(concurrency=concurrency)
        """Taken in with the first function of this process."""

    def take_in(self, enqueuer: Enqueuer) -> None:
        """Know an enqueuer from now on, and tell it what it may want to know of the application; again is harmless.

        Raises:
            ConfigurationError: another one has its kind.
        """
        known = self.enqueuers.get(enqueuer.kind)
        if known is enqueuer:
            return
        if known is not None:
            raise ConfigurationError(
                f"there is another enqueuer of the kind {enqueuer.kind!r}; give it a kind of its own",
                argument="enqueuer",
            )
        self.enqueuers[enqueuer.kind] = enqueuer
        if isinstance(enqueuer, InProcessEnqueuer):
            self.in_process = enqueuer
        use_default = getattr(enqueuer, "use_default", None)
        if use_default is not None:
            use_default(self.redis if isinstance(self.redis, str) else "")
        guard_workers = getattr(enqueuer, "guard_workers", None)
        if guard_workers is not None:
            guard_workers(self.namespace, self.open_sync_guard)
        run_here = getattr(enqueuer, "run_here", None)
        if run_here is not None:
            run_here(self.namespace, self.open_guard)

    def open_guard(self, worker: Process) -> AsyncGuard:
        """Make the guard of a worker process, in its event loop."""
        return AsyncGuard(
            worker,
            AsyncStore(self.redis, self.namespace, app=self.app, replicas_to_ack=self.replicas_to_ack),
            open_heartbeat_store=self._open_blocking_store,
            emit=self.emit,
        )

    def open_sync_guard(self, worker: Process) -> SyncGuard:
        """Make the guard of a worker process without an event loop, in that process."""
        return SyncGuard(
            worker,
            self._open_blocking_store(),
            open_heartbeat_store=self._open_blocking_store,
            emit=self.emit,
        )

    async def start(self) -> None:
        """Let the functions of this process run from now on, and enqueuers get ready for their first message.

        Returns at once, also while Redis is away.
        """
        if self._runs_here:
            await self.in_process.start()
        for enqueuer in self.enqueuers.values():
            prepare = getattr(enqueuer, "prepare", None)
            if prepare is not None:
                prepare()

    async def wait_until_idle(self) -> None:
        """Wait until no function of this process waits or runs."""
        await self.in_process.wait_until_idle()

    async def stop(self, within: float) -> None:
        """Hand the slots of this process back, in so many seconds at most."""
        await self.in_process.stop(within)

    async def close(self) -> None:
        """Close the connections that enqueuers opened in this event loop."""
        for enqueuer in self.enqueuers.values():
            await enqueuer.close()

    @property
    def _runs_here(self) -> bool:
        return self.in_process.kind in self.enqueuers

    def _open_blocking_store(self) -> BlockingStore:
        return BlockingStore(self.redis, self.namespace, app=self.app, replicas_to_ack=self.replicas_to_ack)
