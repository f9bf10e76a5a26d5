"""The primary that Sentinels name. A connection that fails asks them again, so a failover needs no restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel

from slotqueue.store.connections.options import NoteConnect, Options, Way, noting
from slotqueue.wire import pack_in_c

PORT = 26379


class _Client(redis.asyncio.Redis):
    """Closes its connections to the Sentinels as well."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: FBT001 - redis-py's signature
        manager: Any = self.connection_pool
        await super().aclose(close_connection_pool)
        for sentinel in manager.sentinel_manager.sentinels:
            await sentinel.aclose()


class _BlockingClient(redis.Redis):
    """Closes its connections to the Sentinels as well."""

    def close(self) -> None:
        manager: Any = self.connection_pool
        super().close()
        for sentinel in manager.sentinel_manager.sentinels:
            sentinel.close()


@dataclass(frozen=True, slots=True)
class Sentinels:
    """Implements `Place` for a primary with replicas.

    Args:
        said: how texts name it.
        hosts: of the Sentinels: host and port.
        service: the name under which they watch it.
        options: how to connect to the primary.
        own_options: how to connect to the Sentinels, as far as that differs: their user and password.
    """

    said: str
    hosts: Sequence[tuple[str, int]]
    service: str
    options: Options
    own_options: Options

    is_cluster = False

    def open(self, note_connect: NoteConnect) -> redis.asyncio.Redis:
        """See `Place.open`."""
        own = _as_client(self.own_options, self.own_options.asynchronous())
        sentinel = redis.asyncio.sentinel.Sentinel(self.hosts, sentinel_kwargs=own)
        client: redis.asyncio.Redis = sentinel.master_for(
            self.service,
            redis_class=_Client,
            redis_connect_func=noting(note_connect),
            **_as_client(self.options, self.options.asynchronous()),
        )
        pack_in_c(client.connection_pool)
        return client

    def open_blocking(self) -> redis.Redis:
        """See `Place.open_blocking`."""
        own = _as_client(self.own_options, self.own_options.blocking())
        sentinel: Any = redis.sentinel.Sentinel(self.hosts, sentinel_kwargs=own)
        client: redis.Redis = sentinel.master_for(
            self.service, redis_class=_BlockingClient, **_as_client(self.options, self.options.blocking())
        )
        return client


def _as_client(options: Options, said: dict[str, Any]) -> dict[str, Any]:
    """The options as redis-py's clients take them, which choose the class of connection themselves."""
    return {**said, "ssl": True} if options.way is Way.TLS else said
