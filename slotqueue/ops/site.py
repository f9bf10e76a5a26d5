"""Where an operator looks: a Redis and a namespace; with an application, its schedules as well."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from slotqueue.app import SlotQueue
from slotqueue.errors import ConfigurationError, InvalidSlotKey
from slotqueue.jobs import Job
from slotqueue.slots import DEFAULT_NAMESPACE, KeyParts, check_namespace, parse_key
from slotqueue.store import AsyncStore
from slotqueue.store.reading import Reader

_LOOSE = re.compile(
    r"(?P<minute>:\d{4}-\d\d-\d\dT\d\d:\d\d)(?::00|(?P<second>:\d\d))?(?:\.0+)?(?:Z|\+00:?00)?(?P<mark>~[^:]*|)\Z",
    re.ASCII | re.IGNORECASE,
)
"""The end of a key as people write it."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the functions of `slotqueue.ops` ask. Build it with `Site.at` or `Site.of`; close it in the same loop.

    Args:
        store: the coordinating Redis.
        namespace: what every key begins with.
        app: tells the schedules; None where only Redis is known.
    """

    store: AsyncStore
    namespace: str
    app: SlotQueue | None = None

    @classmethod
    def at(cls, url: str, namespace: str = DEFAULT_NAMESPACE) -> Self:
        """Look into a Redis, without any code.

        Raises:
            ConfigurationError: a URL or a namespace that cannot be.
        """
        check_namespace(namespace)
        return cls(AsyncStore(url, namespace), namespace)

    @classmethod
    def of(cls, app: SlotQueue) -> Self:
        """Look into the Redis of an application, over a connection of its own."""
        return cls(app.store.another(), app.namespace, app)

    @property
    def reader(self) -> Reader:
        """Reads the namespace."""
        return Reader(self.store, self.namespace)

    @property
    def jobs(self) -> Mapping[str, Job] | None:
        """The application's jobs by name; None where no application is known."""
        return self.app.jobs if self.app is not None else None

    def parts_of(self, key: str) -> KeyParts:
        """Take a slot key of this namespace apart.

        Raises:
            InvalidSlotKey: the text is no slot key.
            ConfigurationError: it is one of another namespace.
        """
        parts = parse_key(canonical(key))
        if parts.namespace != self.namespace:
            raise ConfigurationError(
                f"{key!r} is of the namespace {parts.namespace!r}, and this is {self.namespace!r}", argument="key"
            )
        return parts

    async def close(self) -> None:
        """Close the connection."""
        await self.store.close()


def canonical(text: str) -> str:
    """Write a key as slotqueue does: seconds only where they are not zero, no zone. Other texts stay as they are."""
    return _LOOSE.sub(lambda found: found["minute"] + (found["second"] or "") + found["mark"], text)


def job_of_key(key: str) -> str:
    """The job that a key names; "" for a text that is no slot key."""
    try:
        return parse_key(key).job
    except InvalidSlotKey:
        return ""
