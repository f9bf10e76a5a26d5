"""Packing in C: the same bytes, only quicker."""

from __future__ import annotations

import redis.asyncio
from redis.asyncio.connection import Connection

from slotqueue.store.connections import async_client
from slotqueue.wire import pack_in_c

COMMANDS = [
    ("SCRIPT LOAD", "return 1"),
    ("EVALSHA", "a" * 40, 2, "ran:ü:2026-10-02T03:00", "k", 17, 2.5, b"\x00\xff", "", "x" * 10_000),
    ("PING",),
]


def test_what_is_packed_in_c_is_what_redis_py_packs() -> None:
    quick = async_client("redis://localhost").connection_pool.make_connection()
    plain = Connection()
    assert "pack_command" in vars(type(quick))
    for command in COMMANDS:
        assert b"".join(quick.pack_command(*command)) == b"".join(plain.pack_command(*command))


def test_what_only_redis_py_can_encode_is_left_to_it() -> None:
    quick = async_client("redis://localhost").connection_pool.make_connection()
    packed = b"".join(bytes(each) for each in quick.pack_command("SET", "k", memoryview(b"v")))
    assert packed == b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"


def test_it_is_done_once_a_pool() -> None:
    pool = redis.asyncio.ConnectionPool()
    pack_in_c(pool)
    kind = pool.connection_class
    pack_in_c(pool)
    assert pool.connection_class is kind


async def test_a_batch_goes_out_and_comes_back(redis_url: str) -> None:
    client = async_client(redis_url)
    try:
        assert await client.mset({f"k{i}": "ü" * i for i in range(50)})
        assert await client.mget([f"k{i}" for i in range(50)]) == ["ü" * i for i in range(50)]
    finally:
        await client.aclose()
