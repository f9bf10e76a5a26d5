"""What about a Redis would drop or mislead schedules: eviction, version, clock, cluster, persistence, strange keys.

Nothing here writes, and nothing needs more rights than it finds: where `CONFIG` or `INFO` is forbidden, that is said.

Source: the start-up checks of redbeat and sidekiq; the list of settings is ours.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import redis

from slotqueue.store.connections import UNREACHABLE, how_to_cluster
from slotqueue.store.keys import WORDS, Keys
from slotqueue.store.redis import AsyncStore

OLDEST_REDIS = (6, 2)
LARGEST_OFFSET = timedelta(seconds=1)
"""From here on a host's clock is worth a warning."""
_ROUND_TRIPS = 5


class Level(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """slotqueue cannot work with this."""
    WARNING = "warning"
    """Slots may be lost or repeated one day."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a Redis that an operator should know.

    Args:
        level: how much it matters.
        what: what was found, one sentence without an end.
        advice: what would be right.
    """

    level: Level
    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """By how much Redis's clock is ahead of this host's, below zero where it is behind.

    Args:
        offset: the best of a few round trips.
        uncertainty: half of that round trip: the truth lies within `offset` plus or minus this.
    """

    offset: timedelta
    uncertainty: timedelta


@dataclass(frozen=True, slots=True)
class Health:
    """What was found out about a Redis.

    Args:
        server: its name and version: "Valkey 9.1.0", "Redis 6.2.14"; "unknown" where it cannot be read.
        clock: None where it cannot be read.
        findings: the gravest first; empty where all is well.
    """

    server: str
    clock: ClockOffset | None
    findings: tuple[Finding, ...]


async def check_redis(store: AsyncStore) -> Health:
    """Look at the server, a few round trips long.

    Raises:
        StoreUnavailable: it does not answer; ask again.
    """
    try:
        info = await _info(store)
        config = {name: await _config(store, name) for name in ("maxmemory-policy", "save", "appendonly")}
        clock = await _clock(store)
        types = await _types(store)
    except UNREACHABLE as error:
        raise store.unavailable(error) from error
    findings = [
        *_about_version(info),
        *_about_role(info),
        *([] if store.place.is_cluster else _about_cluster(info, store.verbs.keys.namespace)),
        *_about_types(types, store.verbs.keys),
        *_about_replicas(info, store.replicas_to_ack),
        *_about_eviction(info, config["maxmemory-policy"]),
        *_about_clock(clock),
        *_about_persistence(info, config["save"], config["appendonly"]),
    ]
    order = list(Level)
    return Health(_server(info), clock, tuple(sorted(findings, key=lambda finding: order.index(finding.level))))


# ---- what is asked


async def _info(store: AsyncStore) -> Mapping[str, Any]:
    """All that INFO says; nothing where it is forbidden."""
    try:
        found: Mapping[str, Any] = await store.client.info(**await store.node())
    except redis.ResponseError:
        return {}
    return found


async def _config(store: AsyncStore, name: str) -> str | None:
    """One setting; None where CONFIG is forbidden or renamed, or knows no such setting."""
    try:
        found: Mapping[str, str] = await store.client.config_get(name, **await store.node())
    except redis.ResponseError:
        return None
    return found.get(name)


async def _types(store: AsyncStore) -> dict[str, str]:
    """The type of each key that the namespace keeps about itself, by its word; nothing where TYPE is forbidden."""
    async with store.client.pipeline(transaction=False) as pipe:
        for word in WORDS:
            pipe.type(store.verbs.keys.of(word))
        found = await pipe.execute(raise_on_error=False)
    return {word: kind for word, kind in zip(WORDS, found, strict=True) if isinstance(kind, str)}


async def _clock(store: AsyncStore) -> ClockOffset | None:
    """Compare the clocks; the quickest of a few round trips is the most certain."""
    best: ClockOffset | None = None
    for _ in range(_ROUND_TRIPS):
        sent = time.time_ns()
        try:
            seconds, micros = await store.client.time(**await store.node())
        except redis.ResponseError:
            return None
        received = time.time_ns()
        there = (int(seconds) * 1_000_000 + int(micros)) * 1000
        offset = timedelta(microseconds=(there - (sent + received) / 2) / 1000)
        uncertainty = timedelta(microseconds=max(received - sent, 0) / 2000)
        if best is None or uncertainty < best.uncertainty:
            best = ClockOffset(offset, uncertainty)
    return best


# ---- how it is judged


def _server(info: Mapping[str, Any]) -> str:
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}" if "redis_version" in info else "unknown"


def _about_version(info: Mapping[str, Any]) -> list[Finding]:
    if "valkey_version" in info:
        return []
    wanted = "use Redis 6.2 or later, or Valkey"
    numbers = re.match(r"(\d+)\.(\d+)", str(info.get("redis_version", "")))
    if numbers is None:
        what = "the server's version could not be read, and every new connection counts as another server"
        return [Finding(Level.NOTE, what, "allow the command INFO")]
    if (int(numbers[1]), int(numbers[2])) < OLDEST_REDIS:
        return [Finding(Level.ERROR, f"Redis {info['redis_version']} is too old", wanted)]
    return []


def _about_role(info: Mapping[str, Any]) -> list[Finding]:
    if info.get("role") not in {"slave", "replica"}:
        return []
    return [Finding(Level.ERROR, "the server is a replica and takes no writes", "name the primary in the URL")]


def _about_cluster(info: Mapping[str, Any], namespace: str) -> list[Finding]:
    if "cluster" not in {info.get("redis_mode"), info.get("server_mode")}:  # Valkey's word is the second
        return []
    return [Finding(Level.ERROR, "the server is a node of a cluster, asked as if alone", how_to_cluster(namespace))]


def _about_types(types: Mapping[str, str], keys: Keys) -> list[Finding]:
    return [
        Finding(
            Level.ERROR,
            f"the key {keys.of(word)} is a {kind} and no {WORDS[word]}: something else writes there",
            "delete that key, or choose another namespace",
        )
        for word, kind in types.items()
        if kind not in {WORDS[word], "none"}
    ]


def _about_replicas(info: Mapping[str, Any], wanted: int) -> list[Finding]:
    there = info.get("connected_slaves")
    if not isinstance(there, int) or there >= wanted:
        return []
    return [
        Finding(
            Level.ERROR,
            f"replicas of Redis that are connected: {there}; replicas_to_ack={wanted} waits for more, in vain",
            "connect them, or lower replicas_to_ack",
        )
    ]


def _about_eviction(info: Mapping[str, Any], policy: str | None) -> list[Finding]:
    policy = policy or info.get("maxmemory_policy")
    wanted = "set maxmemory-policy to noeviction"
    if policy is None:
        return [Finding(Level.WARNING, "the eviction policy could not be read", wanted)]
    if policy == "noeviction":
        return []
    return [
        Finding(
            Level.WARNING,
            f"the eviction policy is {policy}: short of memory, Redis drops claims and markers, and slots run again",
            wanted,
        )
    ]


def _about_clock(clock: ClockOffset | None) -> list[Finding]:
    if clock is None:
        return [Finding(Level.WARNING, "the clock could not be read", "allow the command TIME")]
    if abs(clock.offset) - clock.uncertainty <= LARGEST_OFFSET:
        return []
    seconds = clock.offset.total_seconds()
    where = "ahead of" if seconds > 0 else "behind"
    return [
        Finding(
            Level.WARNING,
            f"Redis's clock is {abs(seconds):.1f} s {where} this host's "
            f"(give or take {clock.uncertainty.total_seconds():.3f} s); slots follow Redis's",
            "synchronise both clocks",
        )
    ]


def _about_persistence(info: Mapping[str, Any], save: str | None, appendonly: str | None) -> list[Finding]:
    is_logged = appendonly == "yes" or info.get("aof_enabled") == 1
    wanted = "turn on appendonly, or snapshots"
    if is_logged or save:
        return []
    if save is None:
        return [Finding(Level.NOTE, "whether data outlives a restart could not be read", wanted)]
    return [
        Finding(
            Level.NOTE,
            "persistence is off: after a restart Redis is empty, and what was decided must be made out anew",
            wanted,
        )
    ]
