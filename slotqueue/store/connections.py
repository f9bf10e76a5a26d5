"""How slotqueue connects to its Redis: bounded waits on every socket, one quick retry, no password in any text."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
import redis.retry

from slotqueue.errors import ConfigurationError, StoreUnavailable

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 3.0
_STALE = (redis.ConnectionError,)
UNREACHABLE = (redis.RedisError, OSError, TimeoutError)
"""What a call to Redis may raise for reasons that are not ours."""


def async_client(url: str) -> redis.asyncio.Redis:
    """Build a client; it connects at its first command.

    Raises:
        ConfigurationError: a URL that redis-py cannot read.
    """
    # A pooled connection that the server closed while idle fails at once: every verb may be asked again, so ask.
    retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 1, supported_errors=_STALE)
    client: redis.asyncio.Redis = _from_url(redis.asyncio.Redis, url, retry)
    return client


def blocking_client(url: str) -> redis.Redis:
    """Build a client for threads; it connects at its first command.

    Raises:
        ConfigurationError: a URL that redis-py cannot read.
    """
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 1, supported_errors=_STALE)
    client: redis.Redis = _from_url(redis.Redis, url, retry)
    return client


def _from_url(kind: Any, url: str, retry: Any) -> Any:
    try:
        return kind.from_url(
            url,
            decode_responses=True,
            encoding_errors="replace",
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=ANSWER_SECONDS,
            retry=retry,
            client_name="slotqueue",
        )
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{safe_url(url)} is no Redis URL ({error}); one looks like redis://user:password@host:6379/0",
            argument="redis",
        ) from None


def safe_url(url: str) -> str:
    """The URL without its password, for texts that people see."""
    try:
        parts = urlsplit(url)
        has_password = parts.password is not None
    except ValueError:
        return "the given text"
    if parts.query:
        parts = parts._replace(query="")
    if not has_password:
        return urlunsplit(parts)
    host = parts.netloc.rpartition("@")[2]
    user = parts.username or ""
    return urlunsplit(parts._replace(netloc=f"{user}:***@{host}"))


def unavailable(url: str, error: BaseException) -> StoreUnavailable:
    """Say in one line which Redis does not answer, and why."""
    text = str(error).strip() or type(error).__name__
    return StoreUnavailable(f"Redis at {safe_url(url)}: {text}")
