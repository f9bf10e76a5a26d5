"""How slotqueue connects to its Redis: bounded waits on every socket, one quick retry, no password in any text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
import redis.retry

from slotqueue.errors import ConfigurationError, StoreUnavailable
from slotqueue.wire import pack_in_c

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 3.0
UNREACHABLE = (redis.RedisError, OSError, TimeoutError)
"""What a call to Redis may raise for reasons that are not ours."""

# A pooled connection that the server closed while idle fails at once: every verb may be asked again, so ask.
_ASK_AGAIN = (redis.ConnectionError,)


def async_client(url: str) -> redis.asyncio.Redis:
    """Build a client; it connects at its first command.

    Raises:
        ConfigurationError: a URL that redis-py cannot read.
    """
    retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 1, supported_errors=_ASK_AGAIN)
    with _reading(url):
        client: redis.asyncio.Redis = redis.asyncio.Redis.from_url(url, **_options(retry))
        _try_options(client.connection_pool)
    pack_in_c(client.connection_pool)
    return client


def blocking_client(url: str) -> redis.Redis:
    """Build a client for threads; it connects at its first command.

    Raises:
        ConfigurationError: a URL that redis-py cannot read.
    """
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 1, supported_errors=_ASK_AGAIN)
    with _reading(url):
        client: redis.Redis = redis.Redis.from_url(url, **_options(retry))
        _try_options(client.connection_pool)
    return client


def safe_url(url: str) -> str:
    """The URL without its password, for texts that people see.

    Up to the last "@" it may be a password, whatever else it looks like: a "/" in one that nobody escaped, for example.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return "the given text"
    said, is_said, where = rest.rpartition("@")
    where = where.partition("?")[0]
    if not is_said:
        return f"{scheme}://{where}"
    user, has_password, _ = said.partition(":")
    if any(mark in said for mark in "/?#"):
        return f"{scheme}://***@{where}"
    return f"{scheme}://{user}:***@{where}" if has_password else f"{scheme}://{user}@{where}"


def is_read_only(error: BaseException) -> bool:
    """Whether the server has become a replica: the next connection may lead to the new primary."""
    is_wrapped = "READONLY" in str(error)  # by Redis 6.2, where a script runs into it
    return is_wrapped or isinstance(error, redis.exceptions.ReadOnlyError)


def unavailable(url: str, error: BaseException) -> StoreUnavailable:
    """Say in one line which Redis does not answer, and why."""
    text = str(error).strip() or type(error).__name__
    return StoreUnavailable(f"Redis at {safe_url(url)}: {text}")


def _options(retry: object) -> dict[str, Any]:
    return {
        "decode_responses": True,
        "encoding_errors": "replace",
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_timeout": ANSWER_SECONDS,
        "retry": retry,
        "retry_on_error": list(_ASK_AGAIN),
        "client_name": "slotqueue",
    }


def _try_options(pool: redis.ConnectionPool | redis.asyncio.ConnectionPool) -> None:
    """Build a connection and leave it unconnected: an option that redis-py does not know shows only there."""
    pool.connection_class(**pool.connection_kwargs)


@contextmanager
def _reading(url: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, AttributeError) as error:
        why = "" if "@" in url else f" ({error})"  # or the error would quote a piece of the password
        raise ConfigurationError(
            f"{safe_url(url)} is no Redis URL{why}; one looks like redis://user:password@host:6379/0",
            argument="redis",
        ) from None
