"""An application's life in this process, from start to stop: one replica at most, its loops, and passes by hand."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Mapping

from slotqueue import disabled
from slotqueue.errors import ConfigurationError, StoreUnavailable
from slotqueue.events import Emit, TickingDisabled
from slotqueue.jobs import Job
from slotqueue.loops import Loops
from slotqueue.replica import Pulse, Replica
from slotqueue.store import AsyncStore
from slotqueue.worker_systems import WorkerSystems

_STOP_SECONDS, _CLOSE_SECONDS = 3.5, 1.0
_LEAVE_SECONDS = 0.5


class Life:
    """Starts and stops what an application is in this process.

    Args:
        store: the coordinating Redis.
        systems: where messages go, and what functions of this process run in.
        jobs: by name; may grow and shrink.
        assemble: makes the replica, without jobs.
        emit: takes events.
    """

    def __init__(
        self,
        store: AsyncStore,
        systems: WorkerSystems,
        jobs: Mapping[str, Job],
        assemble: Callable[[], Replica],
        emit: Emit,
    ) -> None:
        self._store = store
        self._systems = systems
        self._jobs = jobs
        self._assemble = assemble
        self._emit = emit
        self._pid = os.getpid()
        self._replica: Replica | None = None
        self._loops: Loops | None = None
        self._has_said_disabled = False

    @property
    def is_ready(self) -> bool:
        """See `SlotQueue.is_ready`."""
        if self._pid != os.getpid():
            return False
        are_alive = self._loops is None or self._loops.are_alive
        return are_alive and self._replica is not None and self._replica.is_ready

    @property
    def pulse(self) -> Pulse:
        """See `SlotQueue.pulse`."""
        if self._pid != os.getpid() or self._loops is None or self._replica is None:
            return Pulse(is_ticking=False)
        return self._replica.pulse._replace(is_ticking=self._loops.are_alive)

    def is_disabled(self) -> bool:
        """Whether the environment says that nothing ticks here, which is told once."""
        if not disabled.is_disabled():
            return False
        if not self._has_said_disabled:
            self._has_said_disabled = True
            self._emit(TickingDisabled(disabled.VARIABLE))
        return True

    def tell(self, change: Callable[[Replica], object]) -> None:
        """Change the replica, if there is one, in its own thread."""
        loops, replica = self._loops, self._replica
        if loops is not None and replica is not None:
            loops.call(lambda: change(replica))
        elif replica is not None:
            change(replica)

    async def tick(self) -> Counter[str]:
        """See `SlotQueue.tick`."""
        counts = await self._here().ticker.tick()
        await self._functions_ended()
        return counts

    async def sweep(self) -> Counter[str]:
        """See `SlotQueue.sweep`."""
        replica = self._here()
        await replica.ticker.registrar.register()
        counts = await replica.sweeper.sweep()
        await self._functions_ended()
        return counts

    async def start(self) -> None:
        """See `SlotQueue.start`."""
        self._forget_parent()
        if self._loops is not None:
            raise ConfigurationError("this SlotQueue ticks already")
        if self.is_disabled():
            return
        await self._systems.start()
        self._loops = Loops(self._here())

    async def wait(self, until: asyncio.Event | None) -> None:
        """Wait until the event is set, or for ever.

        Raises:
            Exception: a loop ended by an error that nobody foresaw.
        """
        if self._loops is not None:
            await self._loops.wait(until)
        else:
            await (until or asyncio.Event()).wait()

    async def hand_back(self) -> None:
        """See `SlotQueue.hand_back`."""
        await self._systems.stop(_CLOSE_SECONDS)

    async def stop(self) -> None:
        """See `SlotQueue.stop`."""
        if self._loops is not None:
            await asyncio.gather(self._loops.stop(), self._systems.stop(_STOP_SECONDS))
        await self.close()

    async def close(self) -> None:
        """See `SlotQueue.close`."""
        replica, self._replica = self._replica, None
        self._loops = None
        with contextlib.suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                if replica is not None:
                    await replica.leave()
        await self._systems.stop(_CLOSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._systems.close()
                await self._store.close()

    async def _functions_ended(self) -> None:
        """Where no loop keeps this process alive, a pass is over when its functions are."""
        if self._loops is None:
            await self._systems.wait_until_idle()

    def _here(self) -> Replica:
        self._forget_parent()
        if self._replica is None:
            self._replica = self._assemble()
            for job in list(self._jobs.values()):  # another thread may add one meanwhile
                self._replica.ticker.add(job)
        return self._replica

    def _forget_parent(self) -> None:
        """After a fork, begin anew: neither loops nor the replica's name are this process's."""
        if self._pid != os.getpid():
            self._pid, self._replica, self._loops = os.getpid(), None, None
