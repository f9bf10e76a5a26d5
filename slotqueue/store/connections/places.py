"""Where a Redis is: a value that holds no socket, so that it may be made at import and cross a fork."""

from __future__ import annotations

from typing import Any, Protocol

from slotqueue.errors import ConfigurationError
from slotqueue.store.connections.given import place_like
from slotqueue.store.connections.options import NoteConnect
from slotqueue.store.connections.urls import place_at
from slotqueue.store.connections.words import hash_tag


class Place(Protocol):
    """Where a Redis is, and how to connect to it."""

    @property
    def said(self) -> str:
        """How texts name it: no password."""
        ...

    @property
    def is_cluster(self) -> bool:
        """Whether it is a cluster."""
        ...

    def open(self, note_connect: NoteConnect) -> Any:  # noqa: ANN401 - `Redis` and `RedisCluster` have no type in common
        """Make an asyncio client, which connects at its first command; `note_connect` hears of each connection."""
        ...

    def open_blocking(self) -> Any:  # noqa: ANN401 - as in open
        """Make a client for threads. That of a cluster looks for the nodes at once, and may raise `UNREACHABLE`."""
        ...


def async_client(url: str) -> Any:  # noqa: ANN401 - as in open
    """Build an asyncio client; it connects at its first command.

    Raises:
        ConfigurationError: a URL that cannot be read.
    """
    return place_at(url).open(lambda: None)


def blocking_client(url: str) -> Any:  # noqa: ANN401 - as in open
    """Build a client for threads; it connects at its first command.

    Raises:
        ConfigurationError: a URL that cannot be read.
    """
    return place_at(url).open_blocking()


def place_of(redis: object, namespace: str) -> Place:
    """Find out where a Redis is.

    Args:
        redis: a URL, or a client of redis-py that connects there.
        namespace: what every key will begin with.

    Raises:
        ConfigurationError: neither, or a cluster for a namespace without a hash tag.
    """
    place: Place = place_at(redis) if isinstance(redis, str) else place_like(redis)
    if place.is_cluster and not hash_tag(namespace):
        raise ConfigurationError(
            f"{place.said} is a cluster, and the keys of {namespace!r} would lie on different nodes; "
            f"give the namespace a hash tag: {f'{{{namespace}}}'!r}",
            argument="namespace",
        )
    return place
