"""How readers ask: pipelines of a thousand commands, where a damaged key is an answer and only an outage raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import redis

from slotqueue.errors import StoreUnavailable
from slotqueue.store.connections import UNREACHABLE
from slotqueue.store.keys import Keys
from slotqueue.store.redis import AsyncStore

T = TypeVar("T")

CHUNK = 1000
"""Commands in one pipeline, or slots in one script call."""
_WRONG_TYPE = "WRONGTYPE"

Queue = Callable[[Any], object]
"""Puts one command on a pipeline."""


class Asker:
    """Asks one namespace.

    Args:
        store: the coordinating Redis.
        namespace: what every key begins with.
    """

    def __init__(self, store: AsyncStore, namespace: str) -> None:
        self.keys = Keys(namespace)
        self.store = store

    async def ask(self, questions: Iterable[Queue]) -> list[Any]:
        """Send questions by the thousand; a key of the wrong type is an answer, everything else raises.

        Raises:
            StoreUnavailable: ask again.
        """
        wanted, replies = list(questions), list[Any]()
        try:
            for at in range(0, len(wanted), CHUNK):
                async with self.store.client.pipeline(transaction=False) as pipe:
                    for queue in wanted[at : at + CHUNK]:
                        queue(pipe)
                    replies += await pipe.execute(raise_on_error=False)
        except UNREACHABLE as error:
            raise self.store.unavailable(error) from error
        for reply in replies:
            if isinstance(reply, redis.RedisError) and not str(reply).startswith(_WRONG_TYPE):
                raise self.store.unavailable(reply) from reply
        return replies

    async def now(self) -> int:
        """Read Redis's time, ms; in a cluster that of the node which holds the namespace.

        Raises:
            StoreUnavailable: ask again.
        """
        try:
            node = await self.store.node()
        except UNREACHABLE as error:
            raise self.store.unavailable(error) from error
        ((seconds, micros),) = await self.ask([lambda pipe: pipe.execute_command("TIME", **node)])
        return int(seconds) * 1000 + int(micros) // 1000

    def sound(self, reply: T) -> T:
        """Take an answer about a key of the namespace: where that one is of another type, nothing can be said."""
        if isinstance(reply, redis.RedisError):
            raise StoreUnavailable(
                f"Redis at {self.store.place.said}: a key of the namespace {self.keys.namespace!r} "
                f"is of another type: {reply}"
            ) from reply
        return reply
