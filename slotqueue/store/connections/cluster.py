"""A cluster. The hash tag of the namespace keeps all its keys on one node: every script finds what it needs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio.cluster
import redis.cluster

from slotqueue.store.connections.options import NoteConnect, Options, Way, noting

PORT = 6379


@dataclass(frozen=True, slots=True)
class Cluster:
    """Implements `Place` for a cluster.

    Args:
        said: how texts name it.
        hosts: of some nodes: host and port; the others are found.
        options: how to connect to each.
    """

    said: str
    hosts: Sequence[tuple[str, int]]
    options: Options

    is_cluster = True

    def open(self, note_connect: NoteConnect) -> redis.asyncio.cluster.RedisCluster:
        """See `Place.open`."""
        nodes = [redis.asyncio.cluster.ClusterNode(host, port) for host, port in self.hosts]
        client: redis.asyncio.cluster.RedisCluster = redis.asyncio.cluster.RedisCluster(
            startup_nodes=nodes, **self._as_client(self.options.asynchronous())
        )
        client.connection_kwargs["redis_connect_func"] = noting(note_connect)
        return client

    def open_blocking(self) -> redis.cluster.RedisCluster:
        """See `Place.open_blocking`."""
        nodes = [redis.cluster.ClusterNode(host, port) for host, port in self.hosts]
        client: redis.cluster.RedisCluster = redis.cluster.RedisCluster(
            startup_nodes=nodes, **self._as_client(self.options.blocking())
        )
        return client

    def _as_client(self, said: dict[str, Any]) -> dict[str, Any]:
        """The options as redis-py's cluster clients take them. They find the new primary themselves: one try more."""
        chosen = {name: value for name, value in said.items() if name not in {"retry_on_error", "db"}}
        chosen["ssl"] = self.options.way is Way.TLS
        if redis.VERSION[0] < 6:  # later ones count the tries of the cluster by `retry`
            chosen["cluster_error_retry_attempts"] = 1
        return chosen
