from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from slotqueue.errors import StoreUnavailable
from slotqueue.store import AsyncStore, checks
from slotqueue.store.checks import ClockOffset, Finding, Health, Level, check_redis
from tests.servers import Server, ServerKind, requested_kind


@asynccontextmanager
async def _store(url: str, namespace: str = "ran") -> AsyncIterator[AsyncStore]:
    store = AsyncStore(url, namespace)
    yield store
    await store.close()


async def _check(url: str, namespace: str = "ran") -> Health:
    async with _store(url, namespace) as store:
        return await check_redis(store)


def _found(health: Health, text: str) -> list[Level]:
    return [finding.level for finding in health.findings if text in finding.what]


@pytest.fixture
def started() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*options: str, appendonly: bool = False) -> Server:
        servers.append(Server(options=options, appendonly=appendonly))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


async def test_a_sound_server_has_no_findings(durable_server: Server) -> None:
    health = await _check(durable_server.url)
    assert health.findings == ()
    assert health.clock is not None
    assert abs(health.clock.offset) <= timedelta(seconds=1)
    assert timedelta(0) <= health.clock.uncertainty < timedelta(seconds=1)


async def test_the_server_is_named(redis_url: str) -> None:
    expected = {ServerKind.VALKEY: "Valkey ", ServerKind.REDIS: "Redis ", ServerKind.REDIS62: "Redis 6.2."}
    assert (await _check(redis_url)).server.startswith(expected[requested_kind()])


async def test_persistence_that_is_off_is_noted(redis_url: str) -> None:
    assert _found(await _check(redis_url), "persistence is off") == [Level.NOTE]


async def test_snapshots_are_persistence(started: Callable[..., Server]) -> None:
    server = started()
    server.ask('CONFIG SET save "3600 1"')
    assert (await _check(server.url)).findings == ()


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_eviction_is_warned_about(started: Callable[..., Server], policy: str) -> None:
    health = await _check(started("--maxmemory-policy", policy).url)
    assert _found(health, f"the eviction policy is {policy}") == [Level.WARNING]
    assert health.findings[0].advice == "set maxmemory-policy to noeviction"


@pytest.mark.parametrize("policy", ["allkeys-lru", "noeviction"])
async def test_where_config_is_renamed_info_tells_the_eviction_policy(
    started: Callable[..., Server], policy: str
) -> None:
    health = await _check(started("--maxmemory-policy", policy, "--rename-command", "CONFIG", "").url)
    assert _found(health, "the eviction policy is allkeys-lru") == [Level.WARNING] * (policy == "allkeys-lru")
    assert _found(health, "whether data outlives a restart could not be read") == [Level.NOTE]


async def test_a_user_without_config_gets_the_policy_from_info(started: Callable[..., Server]) -> None:
    server = started("--maxmemory-policy", "allkeys-random")
    server.ask("ACL SETUSER app on >secret ~* +@all -config")
    health = await _check(server.url.replace("redis://", "redis://app:secret@"))
    assert _found(health, "the eviction policy is allkeys-random") == [Level.WARNING]
    assert health.server != "unknown"


async def test_a_user_without_config_and_info_is_told_what_could_not_be_read(started: Callable[..., Server]) -> None:
    server = started()
    server.ask("ACL SETUSER app on >secret ~* +@all -@dangerous +client -time")
    health = await _check(server.url.replace("redis://", "redis://app:secret@"))
    assert [(finding.level, finding.what) for finding in health.findings] == [
        (Level.WARNING, "the eviction policy could not be read"),
        (Level.WARNING, "the clock could not be read"),
        (Level.NOTE, "the server's version could not be read, and every new connection counts as another server"),
        (Level.NOTE, "whether data outlives a restart could not be read"),
    ]
    assert (health.server, health.clock) == ("unknown", None)
    assert "secret" not in repr(health)


async def test_a_log_is_seen_without_config(started: Callable[..., Server]) -> None:
    health = await _check(started("--rename-command", "CONFIG", "", appendonly=True).url)
    assert health.findings == ()


async def test_a_replica_is_an_error(started: Callable[..., Server]) -> None:
    server = started()
    server.ask("REPLICAOF 127.0.0.1 1")
    assert _found(await _check(server.url), "is a replica") == [Level.ERROR]


@pytest.mark.parametrize("namespace", ["ran", "{ran}"])
async def test_a_node_of_a_cluster_that_is_asked_as_if_alone_is_an_error(
    started: Callable[..., Server], namespace: str
) -> None:
    server = started("--cluster-enabled", "yes")
    assert _found(await _check(server.url, namespace), "cluster") == [Level.ERROR]


@pytest.mark.parametrize(
    "info, is_error",
    [
        ({"redis_version": "6.0.16"}, True),
        ({"redis_version": "5.0"}, True),
        ({"redis_version": "6.2.0"}, False),
        ({"redis_version": "7.0.15"}, False),
        ({"redis_version": "10.0.0"}, False),
        ({"redis_version": "4.0.0", "valkey_version": "7.2.5", "server_name": "valkey"}, False),
    ],
)
async def test_a_redis_before_6_2_is_an_error_and_any_valkey_is_fine(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, info: dict[str, Any], is_error: bool
) -> None:
    async def answer(store: AsyncStore) -> dict[str, Any]:
        return {"maxmemory_policy": "noeviction", **info}

    monkeypatch.setattr(checks, "_info", answer)
    health = await _check(redis_url)
    assert _found(health, "is too old") == [Level.ERROR] * is_error


@pytest.mark.parametrize(
    "offset, uncertainty, expected",
    [
        (600.0, 0.1, "600.0 s ahead of this host's"),
        (-600.0, 0.1, "600.0 s behind this host's"),
        (1.5, 0.6, None),
        (0.9, 0.0, None),
    ],
)
async def test_a_clock_that_is_surely_off_is_warned_about(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, offset: float, uncertainty: float, expected: str | None
) -> None:
    clock = ClockOffset(timedelta(seconds=offset), timedelta(seconds=uncertainty))

    async def answer(store: AsyncStore) -> ClockOffset:
        return clock

    monkeypatch.setattr(checks, "_clock", answer)
    health = await _check(redis_url)
    assert health.clock == clock
    assert _found(health, "clock") == ([Level.WARNING] if expected else [])
    assert expected is None or _found(health, expected)


async def test_the_offset_of_a_host_whose_clock_is_off_is_measured(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 600 * 10**9)
    health = await _check(redis_url)
    assert health.clock is not None
    assert abs(health.clock.offset - timedelta(minutes=10)) < timedelta(seconds=1)


async def test_a_server_that_does_not_answer_is_unavailable(own_server: Server) -> None:
    own_server.stop()
    with pytest.raises(StoreUnavailable):
        await _check(own_server.url)


def test_findings_are_values() -> None:
    finding = Finding(Level.NOTE, "a", "b")
    assert finding == Finding(Level.NOTE, "a", "b")
    assert len({finding, Finding(Level.NOTE, "a", "b")}) == 1
