"""Two runners of a command: one for async code, one for threads. Each sends the script by its digest.

A client belongs to the process, and the async one to the event loop, that first used it: after a fork, or in another
loop, the runner makes a new one, so that no two ever share a socket.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import redis
import redis.asyncio

from slotqueue.errors import StoreUnavailable
from slotqueue.protocols import Command
from slotqueue.store.commands import Commands
from slotqueue.store.connections import UNREACHABLE, is_read_only, place_of, unavailable
from slotqueue.store.ownership import Ownership
from slotqueue.store.scripts import source_of

T = TypeVar("T")

ACKNOWLEDGE_MS = 1000
"""How long replicas of Redis may take to acknowledge a claim or a begin."""


class _Runner:
    """What both runners know.

    Args:
        redis: URL of the coordinating Redis, or a client of redis-py that connects there.
        namespace: what every key begins with.
        app: which application uses the namespace; None where it does not say.
        replicas_to_ack: how many replicas of Redis must acknowledge what `run_acknowledged` writes.

    Raises:
        ConfigurationError: a URL that cannot be read, or a cluster for a namespace without a hash tag.
    """

    def __init__(self, redis: object, namespace: str, *, app: str | None = None, replicas_to_ack: int = 0) -> None:
        self.place = place_of(redis, namespace)
        self.replicas_to_ack = replicas_to_ack
        self.verbs = Commands(namespace)
        self.ownership = Ownership(self.verbs, app)
        self._scripts: dict[Any, dict[str, Any]] = {}
        """By client, and by name."""

    def unavailable(self, error: BaseException, script: str | None = None) -> StoreUnavailable:
        """Say in one line why this Redis does not answer, where a script was sent with a look at its source."""
        source = source_of(script) if script is not None else ""
        namespace, is_cluster = self.verbs.keys.namespace, self.place.is_cluster
        return unavailable(self.place.said, error, namespace, source, is_cluster=is_cluster)

    def _script(self, client: Any, name: str) -> Any:  # noqa: ANN401 - redis-py's, of either kind
        scripts = self._scripts.setdefault(client, {})
        script = scripts.get(name)
        if script is None:
            script = scripts[name] = client.register_script(source_of(name))
        return script

    def _acknowledged(self, client: Any, command: Command[Any], node: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
        """A pipeline, sent at once: the script, and over the same connection the wait for what it wrote."""
        pipe = client.pipeline(transaction=False)
        sha = self._script(client, command.script).sha
        pipe.execute_command("EVALSHA", sha, len(command.keys), *command.keys, *command.args)
        pipe.execute_command("WAIT", self.replicas_to_ack, ACKNOWLEDGE_MS, **node)
        return pipe

    def _doubt(self, command: Command[Any], acknowledged: int) -> str:
        """What stands against trusting an answer; "" where nothing does."""
        if acknowledged >= self.replicas_to_ack:
            return ""
        what, seconds = "begin" if command.script == "begin" else "claim", ACKNOWLEDGE_MS / 1000
        return (
            f"{acknowledged} of {self.replicas_to_ack} replicas of Redis acknowledged the {what} within {seconds:g} s"
        )


class AsyncStore(_Runner):
    """Implements `slotqueue.protocols.Store`.

    Args:
        redis, namespace, app, replicas_to_ack: see `_Runner`.
    """

    def __init__(self, redis: object, namespace: str, *, app: str | None = None, replicas_to_ack: int = 0) -> None:
        super().__init__(redis, namespace, app=app, replicas_to_ack=replicas_to_ack)
        self.connects = 0
        """How many connections were made so far."""
        self._redis = redis
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}
        self._parents: tuple[object, ...] = ()
        """Clients of processes that forked this one: a connection that is let go here ends its parent's hearing, since
        both event loops ask one and the same epoll."""
        self._pid = os.getpid()

    @property
    def client(self) -> Any:  # noqa: ANN401 - `redis.asyncio.Redis` or `RedisCluster`, which have no type in common
        """The client of this process and event loop."""
        if self._pid != os.getpid():
            self._parents = (*self._parents, self._clients)
            self._clients, self._scripts, self._pid = {}, {}, os.getpid()
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for gone in [each for each in self._clients if each.is_closed()]:
                self._forget(gone)
            client = self._clients[loop] = self.place.open(self._note_connect)
        return client

    async def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.Store.run`."""
        await self._be_sure(command)
        return await self._send(command)

    async def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """See `slotqueue.protocols.Store.run_acknowledged`."""
        if not self.replicas_to_ack:
            return await self.run(command), ""
        await self._be_sure(command)
        reply, acknowledged = await self._send_and_wait(command)
        return command.read(reply), self._doubt(command, acknowledged)

    async def history(self) -> str:
        """See `slotqueue.protocols.Store.history`."""
        try:
            node = await self.node()
            server = await self.client.info("server", **node)
            replication = await self.client.info("replication", **node)
        except redis.ResponseError:  # forbidden, or a proxy that knows no INFO
            return ""
        except UNREACHABLE as error:
            raise self.unavailable(error) from error
        names = (server.get("run_id"), replication.get("master_replid"))
        return " ".join(map(str, names)) if all(names) else ""

    async def node(self) -> dict[str, Any]:
        """What to tell a command about the server itself: in a cluster, which node is meant."""
        if not self.place.is_cluster:
            return {}
        client = await self.client.initialize()
        return {"target_nodes": client.get_node_from_key(self.verbs.keys.of("epoch"))}

    def another(self) -> AsyncStore:
        """Make one like this, with connections of its own."""
        keys, app = self.verbs.keys, self.ownership.app
        return AsyncStore(self._redis, keys.namespace, app=app, replicas_to_ack=self.replicas_to_ack)

    async def close(self) -> None:
        """Close the connections of this loop."""
        client = self._forget(asyncio.get_running_loop()) if self._pid == os.getpid() else None
        if client is not None:
            await client.aclose()

    def _forget(self, loop: asyncio.AbstractEventLoop) -> Any:  # noqa: ANN401 - as in client
        client = self._clients.pop(loop, None)
        self._scripts.pop(client, None)
        return client

    def _note_connect(self) -> None:
        self.connects += 1

    async def _be_sure(self, command: Command[Any]) -> None:
        """Ask whose the namespace is, where that is due."""
        if self.ownership.is_due(command.script):
            self.ownership.judge(self.place.said, await self._send(self.ownership.question))

    async def _send(self, command: Command[T]) -> T:
        client = self.client
        try:
            reply = await self._script(client, command.script)(keys=command.keys, args=command.args)
        except UNREACHABLE as error:
            await self._let_go(client, error)
            raise self.unavailable(error, command.script) from error
        return command.read(reply)

    async def _send_and_wait(self, command: Command[T]) -> tuple[Any, int]:
        """Send a script and wait for replicas of Redis to have what it wrote."""
        client = self.client
        try:
            node = await self.node()
            for _ in range(2):
                reply, acknowledged = await self._acknowledged(client, command, node).execute(raise_on_error=False)
                if not isinstance(reply, redis.exceptions.NoScriptError):
                    break
                await client.script_load(source_of(command.script))
            _raise_first(reply, acknowledged)
        except UNREACHABLE as error:
            await self._let_go(client, error)
            raise self.unavailable(error, command.script) from error
        return reply, int(acknowledged)

    async def _let_go(self, client: Any, error: BaseException) -> None:  # noqa: ANN401 - as in client
        """Where the server has become a replica, look for the primary anew."""
        if not is_read_only(error):
            return
        if self.place.is_cluster:
            await client.aclose()
        else:
            await client.connection_pool.disconnect(inuse_connections=False)


class BlockingStore(_Runner):
    """Implements `slotqueue.protocols.SyncStore`; safe to share between threads.

    Args:
        redis, namespace, app, replicas_to_ack: see `_Runner`.
    """

    def __init__(self, redis: object, namespace: str, *, app: str | None = None, replicas_to_ack: int = 0) -> None:
        super().__init__(redis, namespace, app=app, replicas_to_ack=replicas_to_ack)
        self._client: Any = None
        self._pid = 0

    @property
    def client(self) -> Any:  # noqa: ANN401 - `redis.Redis` or `RedisCluster`, which have no type in common
        """The client of this process. That of a cluster may raise `UNREACHABLE`."""
        if self._pid != os.getpid():  # no lock: one that another thread held at the fork would stay held here
            self._client, self._scripts, self._pid = self.place.open_blocking(), {}, os.getpid()
        return self._client

    def run(self, command: Command[T]) -> T:
        """See `slotqueue.protocols.SyncStore.run`."""
        self._be_sure(command)
        return self._send(command)

    def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        """See `slotqueue.protocols.SyncStore.run_acknowledged`."""
        if not self.replicas_to_ack:
            return self.run(command), ""
        self._be_sure(command)
        reply, acknowledged = self._send_and_wait(command)
        return command.read(reply), self._doubt(command, acknowledged)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _be_sure(self, command: Command[Any]) -> None:
        """Ask whose the namespace is, where that is due."""
        if self.ownership.is_due(command.script):
            self.ownership.judge(self.place.said, self._send(self.ownership.question))

    def _send(self, command: Command[T]) -> T:
        try:
            client = self.client
            reply = self._script(client, command.script)(keys=command.keys, args=command.args)
        except UNREACHABLE as error:
            self._let_go(error)
            raise self.unavailable(error, command.script) from error
        return command.read(reply)

    def _send_and_wait(self, command: Command[T]) -> tuple[Any, int]:
        """Send a script and wait for replicas of Redis to have what it wrote."""
        try:
            client, node = self.client, self._node()
            for _ in range(2):
                reply, acknowledged = self._acknowledged(client, command, node).execute(raise_on_error=False)
                if not isinstance(reply, redis.exceptions.NoScriptError):
                    break
                client.script_load(source_of(command.script))
            _raise_first(reply, acknowledged)
        except UNREACHABLE as error:
            self._let_go(error)
            raise self.unavailable(error, command.script) from error
        return reply, int(acknowledged)

    def _node(self) -> dict[str, Any]:
        """See `AsyncStore.node`."""
        if not self.place.is_cluster:
            return {}
        return {"target_nodes": self.client.get_node_from_key(self.verbs.keys.of("epoch"))}

    def _let_go(self, error: BaseException) -> None:
        """Where the server has become a replica, look for the primary anew."""
        if is_read_only(error) and not self.place.is_cluster:
            self._client.connection_pool.disconnect(inuse_connections=False)


def _raise_first(*answers: object) -> None:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
