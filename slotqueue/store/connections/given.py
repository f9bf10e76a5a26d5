"""A client of redis-py in place of a URL: it says how to connect, and is left alone.

slotqueue opens connections of its own as the client does: its threads, its forked children and other event loops cannot
use the client's, and its answers must be text. User, password, TLS, credential provider, Sentinels and cluster are the
client's; time limits and tries are slotqueue's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.asyncio.sentinel
import redis.cluster
import redis.sentinel

from slotqueue.errors import ConfigurationError
from slotqueue.store.connections.cluster import Cluster
from slotqueue.store.connections.options import Options, Way
from slotqueue.store.connections.sentinel import Sentinels
from slotqueue.store.connections.single import Single

_TAKEN = {
    *("host", "port", "path", "db", "username", "password", "credential_provider", "protocol"),
    *("socket_keepalive", "socket_keepalive_options", "socket_type", "health_check_interval"),
}
_CLUSTERS = (redis.asyncio.cluster.RedisCluster, redis.cluster.RedisCluster)
_TLS = (redis.SSLConnection, redis.asyncio.SSLConnection)
_UNIX = (redis.UnixDomainSocketConnection, redis.asyncio.UnixDomainSocketConnection)
_BEHIND_SENTINELS = (redis.sentinel.SentinelConnectionPool, redis.asyncio.sentinel.SentinelConnectionPool)


def place_like(client: object) -> Single | Sentinels | Cluster:
    """Find out how a client connects.

    Raises:
        ConfigurationError: it is no client of redis-py, or connects in a way that cannot be followed.
    """
    try:
        place = _place_like(client)
        place.options.check()
    except (ValueError, TypeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(
            f"the given client connects in a way that cannot be followed ({error}); give its URL", argument="redis"
        ) from None
    return place


def _place_like(client: object) -> Single | Sentinels | Cluster:
    if isinstance(client, _CLUSTERS):
        return _cluster_like(client)
    if not isinstance(client, redis.Redis | redis.asyncio.Redis):
        raise ConfigurationError(
            f"{type(client).__name__} is neither a URL nor a client of redis-py (redis.asyncio.Redis, redis.Redis)",
            argument="redis",
        )
    pool: Any = client.connection_pool
    options = _options_of(pool.connection_kwargs, pool.connection_class)
    if isinstance(pool, _BEHIND_SENTINELS):
        return _sentinels_like(pool, options)
    return Single(_said(options), options)


def _options_of(kwargs: Mapping[str, Any], connection: type[Any]) -> Options:
    way = Way.TLS if issubclass(connection, _TLS) else Way.UNIX if issubclass(connection, _UNIX) else Way.TCP
    said = {
        name: value
        for name, value in kwargs.items()
        if value is not None and (name in _TAKEN or (way is Way.TLS and name.startswith("ssl_")))
    }
    return Options(way, said)


def _said(options: Options) -> str:
    said, user = options.said, ""
    if said.get("username") or said.get("password"):
        user = f"{said.get('username') or ''}{':***' if said.get('password') else ''}@"
    if options.way is Way.UNIX:
        return f"unix://{user}{said.get('path')}"
    return f"{options.way}://{user}{said.get('host', 'localhost')}:{said.get('port', 6379)}/{said.get('db', 0)}"


def _sentinels_like(pool: Any, options: Options) -> Sentinels:  # noqa: ANN401 - a pool of either kind
    if not pool.is_master:
        raise ConfigurationError("the given client asks a replica; give one for the primary", argument="redis")
    pools = [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
    own = _options_of(pools[0].connection_kwargs, pools[0].connection_class).without("host", "port")
    hosts = tuple((str(each.connection_kwargs["host"]), int(each.connection_kwargs["port"])) for each in pools)
    names = ",".join(f"{host}:{port}" for host, port in hosts)
    said = f"{options.way}+sentinel://{names}/{pool.service_name}/{options.said.get('db', 0)}"
    return Sentinels(said, hosts, pool.service_name, options.without("host", "port"), own)


def _cluster_like(client: Any) -> Cluster:  # noqa: ANN401 - a client of either kind
    nodes = list(client.nodes_manager.startup_nodes.values())
    kwargs = client.nodes_manager.connection_kwargs
    is_tls = kwargs.get("ssl") or issubclass(kwargs.get("connection_class", redis.Connection), _TLS)
    options = _options_of(kwargs, redis.SSLConnection if is_tls else redis.Connection).without("host", "port", "db")
    hosts = tuple((str(node.host), int(node.port)) for node in nodes)
    names = ",".join(f"{host}:{port}" for host, port in hosts)
    return Cluster(f"{options.way}+cluster://{names}", hosts, options)
