from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
import redis.asyncio

from tests import servers
from tests.servers import Server, ServerFailed, ServerKind, ServerMissing, find_binary, requested_kind


async def _write(url: str, key: str) -> None:
    async with redis.asyncio.from_url(url) as client:
        await client.set(key, "1")


async def _keys(url: str) -> int:
    async with redis.asyncio.from_url(url) as client:
        return int(await client.dbsize())


@pytest.mark.parametrize("turn", [1, 2])
async def test_every_test_finds_the_shared_server_empty(redis_url: str, turn: int) -> None:
    assert await _keys(redis_url) == 0
    await _write(redis_url, f"left-by-{turn}")


def test_an_own_server_is_not_the_shared_one(server: Server, own_server: Server) -> None:
    assert own_server.port != server.port
    assert own_server.pid != server.pid


def test_the_server_is_of_the_kind_that_was_asked_for(server: Server) -> None:
    info = server.ask("INFO server")
    assert server.kind is requested_kind()
    assert ("valkey_version" in info) is (server.kind is ServerKind.VALKEY)
    assert ("redis_version:6.2." in info) is (server.kind is ServerKind.REDIS62)


async def test_a_server_that_was_killed_without_a_log_comes_up_empty(own_server: Server) -> None:
    url, killed = own_server.url, own_server.pid
    await _write(url, "k")
    own_server.kill()
    assert not own_server.is_running
    with pytest.raises(redis.ConnectionError):
        await _keys(url)
    own_server.start()
    assert own_server.url == url
    assert own_server.pid != killed
    assert await _keys(url) == 0


async def test_a_restart_keeps_or_drops_the_data(own_server: Server) -> None:
    await _write(own_server.url, "k")
    own_server.restart(keep_data=True)
    assert await _keys(own_server.url) == 1
    own_server.restart(keep_data=False)
    assert await _keys(own_server.url) == 0


async def test_data_that_was_saved_for_one_restart_does_not_return_later(own_server: Server) -> None:
    await _write(own_server.url, "k")
    own_server.restart(keep_data=True)
    own_server.kill()
    own_server.start()
    assert await _keys(own_server.url) == 0


async def test_an_append_only_log_outlives_a_kill(durable_server: Server) -> None:
    await _write(durable_server.url, "k")
    durable_server.kill()
    durable_server.start()
    assert await _keys(durable_server.url) == 1


def test_data_that_is_gone_is_not_promised(own_server: Server) -> None:
    own_server.kill()
    with pytest.raises(ServerFailed, match="appendonly=True"):
        own_server.restart(keep_data=True)


@pytest.mark.processes
def test_a_paused_server_answers_nothing_until_it_is_resumed(own_server: Server) -> None:
    own_server.pause()
    with pytest.raises(ServerFailed):
        own_server.ask("PING", timeout_s=0.1)
    own_server.resume()
    assert own_server.ask("PING") == "PONG"


def test_a_paused_server_can_be_stopped(own_server: Server) -> None:
    own_server.pause()
    own_server.stop()
    assert not own_server.is_running


def test_a_port_that_is_taken_is_passed_over(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    free_ports = servers._free_ports
    monkeypatch.setattr(servers, "_free_ports", lambda: chain([server.port], free_ports()))
    with Server() as other:
        assert other.port != server.port
        assert other.ask("PING") == "PONG"


def test_a_closed_server_leaves_nothing_behind(server: Server) -> None:
    with Server() as other:
        folder = other.data_folder
        assert folder.is_dir()
    assert not other.is_running
    assert not folder.exists()


def test_a_server_that_does_not_start_says_what_it_logged(server: Server) -> None:
    with pytest.raises(ServerFailed, match="no-such-option"), Server(options=["--no-such-option", "1"]):
        pass


def test_a_missing_server_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerMissing, match="redis-server"):
        find_binary(ServerKind.REDIS)


def test_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTQUEUE_TEST_SERVER", "memcached")
    with pytest.raises(ValueError, match="memcached: must be one of valkey, redis, redis62"):
        requested_kind()
