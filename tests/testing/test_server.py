"""The server of a test process: its own, and gone with it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from slotqueue.store.connections import blocking_client
from slotqueue.testing.server import empty_database
from tests.waiting import eventually

_KILLED = """
import os, signal
from slotqueue.store.connections import blocking_client
from slotqueue.testing.server import empty_database
client = blocking_client(empty_database(0))
print(client.info("server")["process_id"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_each_database_is_empty_and_nobody_elses(slotqueue_redis: str) -> None:
    client = blocking_client(slotqueue_redis)
    client.set("a", 1)
    others = [empty_database() for _ in range(3)]
    assert len({slotqueue_redis, *others}) == 4
    assert client.exists("a")
    assert empty_database(0) == slotqueue_redis
    assert not client.exists("a")
    client.close()


async def test_a_killed_process_leaves_no_server_behind() -> None:
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, stdout=asyncio.subprocess.PIPE)
    said, _ = await killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    server = int(said)
    await eventually(lambda: not _is_running(server), why=f"the server {server} ends")


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
