"""Where a Redis of arq's is, in a text without a password: what a worker says of itself, and `check` compares."""

from __future__ import annotations

from arq.connections import ArqRedis, RedisSettings


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
