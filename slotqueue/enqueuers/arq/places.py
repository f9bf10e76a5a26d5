"""Where a Redis of arq's is, in a text without a password: what a worker says of itself, and `check` compares."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from arq.connections import ArqRedis, RedisSettings

_TLS_TEXTS = ("ssl_ca_certs", "ssl_ca_data", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")
_TRUE = frozenset({"1", "y", "yes", "t", "true", "on"})


def place_of(redis: RedisSettings | ArqRedis | None) -> str:
    """Say where: "host:port/database", "path/database" of a socket; None stands for arq's default."""
    if isinstance(redis, ArqRedis):
        facts = redis.connection_pool.connection_kwargs
        where = facts.get("path") or f"{facts.get('host', 'localhost')}:{facts.get('port', 6379)}"
        return f"{where}/{facts.get('db') or 0}"
    settings = redis or RedisSettings()
    if settings.sentinel:
        return f"sentinel {settings.sentinel_master}/{settings.database}"
    return f"{settings.unix_socket_path or f'{settings.host}:{settings.port}'}/{settings.database}"


def tls_options(url: str) -> dict[str, Any]:
    """What a URL says behind its "?" about certificates, as arguments of `RedisSettings`."""
    said = dict(parse_qsl(urlsplit(url).query))
    options: dict[str, Any] = {name: said[name] for name in _TLS_TEXTS if name in said}
    if "ssl_check_hostname" in said:
        options["ssl_check_hostname"] = said["ssl_check_hostname"].lower() in _TRUE
    return options
