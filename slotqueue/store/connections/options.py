"""What a connection is told: the options that slotqueue sets, and those that a URL or a given client brings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
import redis.connection
import redis.retry

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 3.0

NoteConnect = Callable[[], None]
"""Called whenever a connection was made."""

# A pooled connection that the server closed while idle fails at once: every verb may be asked again, so ask.
_ASK_AGAIN = (redis.ConnectionError,)


class Way(StrEnum):
    """How a socket is opened."""

    TCP = "redis"
    TLS = "rediss"
    UNIX = "unix"


_BLOCKING: dict[Way, type[Any]] = {
    Way.TCP: redis.Connection,
    Way.TLS: redis.SSLConnection,
    Way.UNIX: redis.UnixDomainSocketConnection,
}
_ASYNC: dict[Way, type[Any]] = {
    Way.TCP: redis.asyncio.Connection,
    Way.TLS: redis.asyncio.SSLConnection,
    Way.UNIX: redis.asyncio.UnixDomainSocketConnection,
}


@dataclass(frozen=True, slots=True)
class Options:
    """How to connect to a server, apart from where it is behind Sentinels or in a cluster.

    Args:
        way: how sockets are opened.
        said: redis-py's options for connections, from a URL or a client.
    """

    way: Way
    said: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def connection(self) -> type[Any]:
        """The class of blocking connections."""
        return _BLOCKING[self.way]

    @property
    def async_connection(self) -> type[Any]:
        """The class of asyncio connections."""
        return _ASYNC[self.way]

    def blocking(self) -> dict[str, Any]:
        """Everything for a blocking connection."""
        return self._all(self.connection, redis.retry.Retry(redis.backoff.NoBackoff(), 1, _ASK_AGAIN))

    def asynchronous(self) -> dict[str, Any]:
        """Everything for an asyncio connection."""
        return self._all(
            self.async_connection, redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 1, supported_errors=_ASK_AGAIN)
        )

    def without(self, *names: str) -> Options:
        """The same without some options."""
        return Options(self.way, {name: value for name, value in self.said.items() if name not in names})

    def check(self) -> None:
        """Build both kinds of connection and leave them unconnected: an unknown option shows only there.

        Raises:
            TypeError, ValueError: redis-py cannot do that.
        """
        self.connection(**self.blocking())
        self.async_connection(**self.asynchronous())

    def _all(self, connection: type[Any], retry: object) -> dict[str, Any]:
        known = inspect.signature(connection.__init__).parameters
        said = {
            name: value
            for name, value in self.said.items()
            if value or name in known or not name.startswith("ssl_")  # one side may lack what is switched off anyway
        }
        return {
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_timeout": ANSWER_SECONDS,
            "client_name": "slotqueue",
            **said,
            "decode_responses": True,
            "encoding_errors": "replace",
            "retry": retry,
            "retry_on_error": list(_ASK_AGAIN),
        }


def noting(note_connect: NoteConnect) -> Callable[[Any], Any]:
    """redis-py's `redis_connect_func` that does what it does without one, and tells."""

    async def greet(connection: Any) -> None:  # noqa: ANN401 - redis-py's connection, of whatever kind
        await connection.on_connect()
        note_connect()

    return greet
