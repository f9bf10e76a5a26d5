"""Two runners of a command: one for async code, one for threads. Each sends the script by its digest.

A client belongs to the process, and the async one to the event loop, that first used it: after a fork, or in another
loop, the runner makes a new one, so that no two ever share a socket.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, TypeVar

import redis
import redis.asyncio

from slotqueue.protocols import Command
from slotqueue.store.commands import Commands
from slotqueue.store.connections import UNREACHABLE, async_client, blocking_client, is_read_only, unavailable
from slotqueue.store.scripts import source_of

T = TypeVar("T")


class AsyncStore:
    """Implements `slotqueue.protocols.Store`.

    Args:
        url: of the coordinating Redis.
        namespace: what every key begins with.

    Raises:
        ConfigurationError: a URL that cannot be read.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.verbs = Commands(namespace)
        self._client = async_client(url)
        self._owner: object = None
        self._scripts: dict[str, Any] = {}

    @property
    def client(self) -> redis.asyncio.Redis:
        """The client of this process and event loop."""
        owner = (os.getpid(), asyncio.get_running_loop())
        if self._owner != owner:
            if self._owner is not None:
                self._client = async_client(self.url)
                self._scripts = {}
            self._owner = owner
        return self._client

    async def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.Store.run`."""
        client = self.client
        script = self._scripts.get(command.script)
        if script is None:
            script = self._scripts[command.script] = client.register_script(source_of(command.script))
        try:
            reply = await script(keys=command.keys, args=command.args)
        except UNREACHABLE as error:
            if is_read_only(error):
                await client.connection_pool.disconnect(inuse_connections=False)
            raise unavailable(self.url, error) from error
        return command.read(reply)

    async def close(self) -> None:
        """Close the connections of this loop."""
        if self._owner == (os.getpid(), asyncio.get_running_loop()):
            await self._client.aclose()


class BlockingStore:
    """Implements `slotqueue.protocols.SyncStore`; safe to share between threads.

    Args:
        url: of the coordinating Redis.
        namespace: what every key begins with.

    Raises:
        ConfigurationError: a URL that cannot be read.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.verbs = Commands(namespace)
        self._client = blocking_client(url)
        self._pid = os.getpid()
        self._scripts: dict[str, Any] = {}

    @property
    def client(self) -> redis.Redis:
        """The client of this process."""
        if self._pid != os.getpid():  # no lock: one that another thread held at the fork would stay held here
            self._client, self._scripts, self._pid = blocking_client(self.url), {}, os.getpid()
        return self._client

    def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.SyncStore.run`."""
        client = self.client
        script = self._scripts.get(command.script)
        if script is None:
            script = self._scripts[command.script] = client.register_script(source_of(command.script))
        try:
            reply = script(keys=command.keys, args=command.args)
        except UNREACHABLE as error:
            if is_read_only(error):
                client.connection_pool.disconnect(inuse_connections=False)
            raise unavailable(self.url, error) from error
        return command.read(reply)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
