"""What is said of a Redis: its URL without a password, and why it does not answer."""

from __future__ import annotations

import re

import redis
import redis.exceptions
import redis.sentinel

from slotqueue.errors import StoreUnavailable, WrongStore

UNREACHABLE = (redis.RedisError, redis.exceptions.RedisClusterException, OSError, TimeoutError)
"""What a call to Redis may raise for reasons that are not ours."""

_COMMAND = re.compile(r"to run the '([^']+)' command", re.IGNORECASE)
_CALL = re.compile(r"redis\.p?call\('(\w+)'")
_LINE = re.compile(r"user_script:\s*(\d+)")
_SEE = "docs/redis.md lists the rules that a user needs"


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


def unavailable(
    where: str, error: BaseException, namespace: str = "", source: str = "", *, is_cluster: bool = False
) -> StoreUnavailable:
    """Say in one line which Redis does not answer, why, and where that helps what to do.

    Args:
        where: the Redis, without a password.
        error: what the client raised.
        namespace: what every key begins with.
        source: of the script that was sent, where one was.
        is_cluster: whether it is asked as a cluster; else a node of one that answers so was named as if it stood alone.
    """
    if not is_cluster and (text := _of_a_cluster(error, namespace)):
        return WrongStore(f"Redis at {where}: {text}")
    return StoreUnavailable(f"Redis at {where}: {_missing_right(str(error), namespace, source) or _in_short(error)}")


def _in_short(error: BaseException) -> str:
    if isinstance(error, redis.sentinel.MasterNotFoundError | redis.asyncio.sentinel.MasterNotFoundError):
        return str(error).partition(" : ")[0]  # behind it stands the repr of every client
    return str(error).strip() or type(error).__name__


def _missing_right(text: str, namespace: str, source: str) -> str:
    """Name the right that a user of the ACL lacks; "" where that is not the trouble.

    Servers word it in many ways: "this user has no permissions to run the 'x' command", "User y has no permissions to
    access a key"; inside of a script an older one says "the user executing the script can't run this command" and the
    line, from which the command is read.
    """
    lowered = text.lower()
    if not any(mark in lowered for mark in ("permission", "acl failure", "user executing the script")):
        return ""
    command = _COMMAND.search(text)
    names = [command[1].lower()] if command is not None else []
    if not names and "run this command" in lowered and (lines := _LINE.findall(text)):
        names = [each.lower() for each in _CALL.findall("".join(source.splitlines()[int(lines[-1]) - 1 :][:1]))]
    if names:
        which = " or ".join(f"+{name}" for name in dict.fromkeys(names))
        return f"the user may not run {names[0].upper()}: its ACL lacks {which}; {_SEE} ({text})"
    if "key" in lowered:
        return f"the user may not touch a key of the namespace: its ACL lacks ~{namespace}:*; {_SEE} ({text})"
    return f"the user's ACL lacks a right; {_SEE} ({text})" if "noperm" in lowered else ""


def _of_a_cluster(error: BaseException, namespace: str) -> str:
    """Say that a node of a cluster was asked as if it were alone."""
    kinds = (redis.exceptions.MovedError, redis.exceptions.ClusterCrossSlotError)
    if not isinstance(error, kinds) and not str(error).startswith(("MOVED", "CROSSSLOT")):
        return ""
    return f"it is a node of a cluster: {how_to_cluster(namespace)}"


def how_to_cluster(namespace: str) -> str:
    """What to write for a cluster."""
    tag = "" if hash_tag(namespace) else f" and a namespace with a hash tag, namespace={f'{{{namespace}}}'!r}"
    return f"write redis+cluster://host:port{tag}"


def hash_tag(namespace: str) -> str:
    """The part of a namespace that decides on which node of a cluster its keys lie; "" where it has none."""
    tag, is_closed, _ = namespace.partition("{")[2].partition("}")
    return tag if is_closed else ""
