"""A store whose time is the test's: the scripts of production on a real server, but `TIME` is an argument of the call.

Keys live as long as they live: their lives are counted by the server's own clock, from the call on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from slotqueue.clock import RedisClock
from slotqueue.errors import StoreUnavailable
from slotqueue.protocols import Command, Verbs
from slotqueue.store.connections import UNREACHABLE, async_client, blocking_client
from slotqueue.store.scripts import source_of

T = TypeVar("T")

Now = Callable[[], int]
"""Answers the time, ms since the epoch."""


@dataclass(frozen=True, slots=True)
class VirtualRedis:
    """A Redis with a clock of ours.

    Args:
        url: of a server whose data is nobody else's.
        verbs: of a namespace.
        now: its time.
    """

    url: str
    verbs: Verbs
    now: Now

    def open(self) -> VirtualStore:
        """Connect, for the running event loop."""
        return VirtualStore(self)

    def open_at_once(self) -> ImmediateStore:
        """Connect, for an event loop in which nothing else goes on meanwhile."""
        return ImmediateStore(BlockingVirtualStore(self))

    def open_blocking(self) -> BlockingVirtualStore:
        """Connect, for a thread."""
        return BlockingVirtualStore(self)


class VirtualStore:
    """Implements `slotqueue.protocols.Store`."""

    def __init__(self, redis: VirtualRedis) -> None:
        self.redis = redis
        self.verbs = redis.verbs
        self.client = async_client(redis.url)
        self._scripts: dict[str, Any] = {}

    async def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.Store.run`."""
        script = self._scripts.get(command.script)
        if script is None:
            script = self._scripts[command.script] = self.client.register_script(_timed_source_of(command.script))
        try:
            reply = await script(command.keys, [*command.args, self.redis.now()])
        except UNREACHABLE as error:
            raise _unavailable(error) from error
        return command.read(reply)

    async def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """See `slotqueue.protocols.Store.run_acknowledged`: no replica of Redis is asked for."""
        return await self.run(command), ""

    async def close(self) -> None:
        """Close the connections."""
        await self.client.aclose()


class BlockingVirtualStore:
    """Implements `slotqueue.protocols.SyncStore`."""

    def __init__(self, redis: VirtualRedis) -> None:
        self.redis = redis
        self.verbs = redis.verbs
        self.client = blocking_client(redis.url)
        self._scripts: dict[str, Any] = {}

    def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.SyncStore.run`."""
        script = self._scripts.get(command.script)
        if script is None:
            script = self._scripts[command.script] = self.client.register_script(_timed_source_of(command.script))
        try:
            reply = script(command.keys, [*command.args, self.redis.now()])
        except UNREACHABLE as error:
            raise _unavailable(error) from error
        return command.read(reply)

    def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """See `slotqueue.protocols.SyncStore.run_acknowledged`: no replica of Redis is asked for."""
        return self.run(command), ""

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class ImmediateStore:
    """Implements `slotqueue.protocols.ReplicaStore` by blocking the event loop: quick, and always in the same order.

    Args:
        store: does the work.
    """

    connects = 1
    """How many connections were made: its server is never another one."""

    def __init__(self, store: BlockingVirtualStore) -> None:
        self._store = store
        self.verbs = store.verbs

    async def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.Store.run`."""
        return self._store.run(command)

    async def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """See `slotqueue.protocols.Store.run_acknowledged`."""
        return self._store.run_acknowledged(command)

    async def history(self) -> str:
        """See `ReplicaStore.history`: always the same."""
        return "virtual"

    def earliest_deadline(self, namespace: str) -> int | None:
        """When the first of the open slots may be taken over, ms; None where no slot is open."""
        client: Any = self._store.client
        found = client.zrange(f"{namespace}:open", 0, 0, withscores=True)
        return int(found[0][1]) if found else None

    async def close(self) -> None:
        """See `slotqueue.protocols.Store.close`."""
        self._store.close()


class VirtualClock(RedisClock):
    """A replica's clock that always agrees with Redis's, and has been in contact since it was made.

    Its monotonic clock stands still: nothing that it measures takes any time.

    Args:
        now: Redis's time.
    """

    def __init__(self, now: Now) -> None:
        super().__init__(lambda: 0.0)
        self._now = now
        self._born = now()

    def exact_ms(self) -> float:
        """See `RedisClock.exact_ms`."""
        return self._now()

    def host_offset_ms(self) -> float:
        """See `RedisClock.host_offset_ms`."""
        return 0.0

    def observe(self, sent: float, now_ms: float, *, precision_ms: float = 1.0) -> float:  # noqa: ARG002 - there is nothing to learn
        """See `RedisClock.observe`."""
        return 0.0

    def contact_ms(self) -> int:
        """See `RedisClock.contact_ms`."""
        return self._now() - self._born


@cache
def _timed_source_of(verb: str) -> str:
    clock = (files("slotqueue.testing") / "clock.lua").read_text(encoding="utf-8")
    return f"{clock}\n{source_of(verb)}"


def _unavailable(error: BaseException) -> StoreUnavailable:
    return StoreUnavailable(f"the server of this test: {str(error) or type(error).__name__}")
