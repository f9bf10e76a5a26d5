"""arq beside each kind of connection: where its queue is, and that a slot runs there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from arq.connections import RedisSettings
from arq.worker import Worker, get_kwargs

from slotqueue import ConfigurationError, Every, Policy, SlotQueue, current_slot
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.protocols import Process
from tests.connections.conftest import TlsServer
from tests.connections.steps import opened
from tests.servers import Server


async def test_the_guards_of_an_application_with_a_client_connect_as_it_does(redis_url: str) -> None:
    given = redis.asyncio.Redis.from_url(redis_url)
    slots = SlotQueue(given, enqueuer=ArqEnqueuer(RedisSettings.from_dsn(redis_url)), defaults=Policy(on_crash="skip"))
    guard = slots._systems.open_guard(Process("w1", tasks=("arq:send",)))
    guard.start()
    async with opened(redis_url) as store, asyncio.timeout(40):
        while not await store.client.hexists("ran:workers", "w1"):  # noqa: ASYNC110 - the heartbeat thread tells nobody
            await asyncio.sleep(0.01)
    await guard.stop()


def test_arq_is_not_sent_elsewhere_where_only_a_client_is_known() -> None:
    with pytest.raises(ConfigurationError, match=r"give ArqEnqueuer\(RedisSettings"):
        SlotQueue(redis.asyncio.Redis(), enqueuer=ArqEnqueuer())


@pytest.mark.parametrize("scheme", ["redis+sentinel://h:1/mymaster", "redis+cluster://h:1"])
def test_arq_is_not_sent_elsewhere_where_it_cannot_read_the_url(scheme: str) -> None:
    with pytest.raises(ConfigurationError, match=r"give ArqEnqueuer\(RedisSettings"):
        SlotQueue(scheme, enqueuer=ArqEnqueuer(), namespace="{ran}")


began: list[str] = []


async def send(ctx: dict[str, Any]) -> None:
    began.append(current_slot().key)


async def _run_one_slot(url: str, settings: RedisSettings) -> None:
    """Let a replica send a slot, and a worker of arq run it."""
    began.clear()
    slots = SlotQueue(url, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
    slots.add("mail", Every(seconds=1), task="send")

    @slots.worker
    class WorkerSettings:
        functions = (send,)
        redis_settings = settings

    async with asyncio.timeout(40):
        while not (await slots.tick())["won"]:  # noqa: ASYNC110 - a pass of its own each time
            await asyncio.sleep(0.05)
    said: dict[str, Any] = dict(get_kwargs(WorkerSettings))  # type: ignore[arg-type]
    worker = Worker(**said, handle_signals=False, burst=True, poll_delay=0.05)
    await worker.async_run()
    await worker.close()
    await slots.close()
    assert began[0].startswith("ran:mail:")


@pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning")  # arq's own
async def test_arq_over_a_unix_socket_takes_it_from_the_application(unix_server: tuple[Server, Path]) -> None:
    server, socket = unix_server
    url = f"unix://{socket}?db=1"
    await _run_one_slot(url, RedisSettings.from_dsn(url))
    server.flush()


@pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning")  # arq's own
async def test_arq_over_tls_takes_its_certificates_from_the_application(tls_server: TlsServer) -> None:
    files = {"ssl_certfile": str(tls_server.certificate), "ssl_keyfile": str(tls_server.certificate)}
    files["ssl_ca_certs"] = str(tls_server.ca)
    settings = RedisSettings(port=tls_server.port, conn_timeout=10, ssl=True, **files)  # type: ignore[arg-type]
    await _run_one_slot(f"rediss://localhost:{tls_server.port}/0?{tls_server.query}&ssl_check_hostname=yes", settings)
    tls_server.server.flush()
