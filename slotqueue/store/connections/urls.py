"""URLs -> places. Servers as redis-py reads them; `redis+sentinel` as redisvl, prefect and langchain write it.

::

    redis://[[user]:password@]host[:port][/database]                                rediss://... for TLS
    unix://[[user]:password@]/path/to/socket[?db=0]
    redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/database]  rediss+sentinel://... for TLS
    redis+cluster://[[user]:password@]host[:port][,host[:port]...]                   rediss+cluster://... for TLS

Behind "?" stand redis-py's options for connections; for Sentinels `sentinel_username` and `sentinel_password` as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from redis.connection import SSLConnection, UnixDomainSocketConnection, parse_url

from slotqueue.errors import ConfigurationError
from slotqueue.store.connections import cluster, sentinel
from slotqueue.store.connections.cluster import Cluster
from slotqueue.store.connections.options import Options, Way
from slotqueue.store.connections.sentinel import Sentinels
from slotqueue.store.connections.single import Single
from slotqueue.store.connections.words import safe_url

_SCHEMES = (
    "redis",
    "rediss",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
)
_OWN = "sentinel_"


class _Parts(NamedTuple):
    """A URL that names several hosts."""

    scheme: str
    user: str
    hosts: list[str]
    path: list[str]
    query: str


def place_at(url: str) -> Single | Sentinels | Cluster:
    """Read a URL.

    Raises:
        ConfigurationError: it cannot be read; the error says what one looks like, and no password.
    """
    try:
        place = _place_at(url)
        place.options.check()
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        why = "" if "@" in url else f" ({error})"  # or the error would quote a piece of the password
        also = ""
        if url.partition("://")[0].lower() not in _SCHEMES:  # redis-py would name those that it knows
            why, also = "", f"; it begins with one of {', '.join(f'{each}://' for each in _SCHEMES)}"
        raise ConfigurationError(
            f"{safe_url(url)} is no Redis URL{why}; one looks like redis://user:password@host:6379/0{also}",
            argument="redis",
        ) from None
    return place


def _place_at(url: str) -> Single | Sentinels | Cluster:
    scheme = url.partition("://")[0]
    match scheme.lower():
        case "redis+sentinel" | "rediss+sentinel":
            return _sentinels_at(url)
        case "redis+cluster" | "rediss+cluster":
            return _cluster_at(url)
        case "sentinel":
            raise ConfigurationError(
                "write redis+sentinel://host:26379,host:26379/name/0, with the name of the primary behind the hosts",
                argument="redis",
            )
    return Single(safe_url(url), _options_at(url))


def _options_at(url: str) -> Options:
    said: dict[str, Any] = parse_url(url)
    kind = said.pop("connection_class", None)
    way = {SSLConnection: Way.TLS, UnixDomainSocketConnection: Way.UNIX}.get(kind, Way.TCP)
    return Options(way, said)


def _sentinels_at(url: str) -> Sentinels:
    parts = _parts_of(url)
    if not parts.path:
        raise ConfigurationError(
            f"{safe_url(url)} does not name its primary; write redis+sentinel://host:26379/name/0", argument="redis"
        )
    service, *database = parts.path
    if len(database) > 1:
        raise ValueError("behind the name of the primary comes the number of the database, and no more")
    all_of_it = _options_at(f"{parts.scheme}://{parts.user}host/{''.join(database)}{parts.query}")
    options = all_of_it.without("host", "port", *(name for name in all_of_it.said if name.startswith(_OWN)))
    own = {name.removeprefix(_OWN): value for name, value in all_of_it.said.items() if name.startswith(_OWN)}
    own |= {name: value for name, value in options.said.items() if name.startswith(("ssl_", "socket_"))}
    own_options = Options(options.way, own)
    own_options.check()
    return Sentinels(safe_url(url), _addresses(parts, sentinel.PORT), service, options, own_options)


def _cluster_at(url: str) -> Cluster:
    parts = _parts_of(url)
    if parts.path not in ([], ["0"]):
        raise ConfigurationError(f"{safe_url(url)}: a cluster has the database 0 only", argument="redis")
    options = _options_at(f"{parts.scheme}://{parts.user}host{parts.query}").without("host", "port")
    return Cluster(safe_url(url), _addresses(parts, cluster.PORT), options)


def _parts_of(url: str) -> _Parts:
    scheme, _, rest = url.partition("://")
    rest, is_asking, query = rest.partition("?")
    user, is_user, where = rest.rpartition("@")
    hosts, *path = where.split("/")
    return _Parts(
        scheme.lower().partition("+")[0],
        f"{user}@" if is_user else "",
        hosts.split(","),
        [each for each in path if each],
        f"?{query}" if is_asking else "",
    )


def _addresses(parts: _Parts, port: int) -> tuple[tuple[str, int], ...]:
    found = []
    for host in parts.hosts:
        said = parse_url(f"redis://{host}")
        if not said.get("host"):
            raise ValueError("a host has no name")
        found.append((str(said["host"]), int(said.get("port") or port)))
    return tuple(found)
