"""One server, over TCP, TLS or a unix socket."""

from __future__ import annotations

from dataclasses import dataclass

import redis
import redis.asyncio

from slotqueue.store.connections.options import NoteConnect, Options, noting
from slotqueue.wire import pack_in_c


@dataclass(frozen=True, slots=True)
class Single:
    """Implements `Place` for one server.

    Args:
        said: how texts name it.
        options: where it is and how to connect.
    """

    said: str
    options: Options

    is_cluster = False

    def open(self, note_connect: NoteConnect) -> redis.asyncio.Redis:
        """See `Place.open`."""
        pool = redis.asyncio.ConnectionPool(
            connection_class=self.options.async_connection,
            redis_connect_func=noting(note_connect),
            **self.options.asynchronous(),
        )
        pack_in_c(pool)
        client: redis.asyncio.Redis = redis.asyncio.Redis.from_pool(pool)
        return client

    def open_blocking(self) -> redis.Redis:
        """See `Place.open_blocking`."""
        pool = redis.ConnectionPool(connection_class=self.options.connection, **self.options.blocking())
        client: redis.Redis = redis.Redis.from_pool(pool)
        return client
