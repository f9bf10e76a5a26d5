"""Every way to reach one server: user, password, database, TLS, a unix socket, a client in place of a URL."""

from __future__ import annotations

import asyncio
import multiprocessing
import traceback
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.sentinel

from slotqueue import ConfigurationError, SlotQueue, StoreUnavailable
from slotqueue.store import AsyncStore
from slotqueue.store.connections import place_of, safe_url
from slotqueue.store.connections.cluster import Cluster
from slotqueue.store.connections.sentinel import Sentinels
from tests.connections import documents
from tests.connections.conftest import TlsServer, new_server
from tests.connections.steps import live_a_life, opened, opened_blocking
from tests.servers import Server

SECRET = "s3/cr@t"
ESCAPED = "s3%2Fcr%40t"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that lets nobody in but the user "app"."""
    with new_server() as server:
        server.ask(f"ACL SETUSER app on >{SECRET} ~* &* +@all")
        server.ask("ACL SETUSER default nopass +@all")
        yield server


async def test_user_password_and_database_of_a_url_are_used(guarded: Server) -> None:
    guarded.flush()
    url = f"redis://app:{ESCAPED}@127.0.0.1:{guarded.port}/3"
    await live_a_life(url)
    async with opened(url) as store:
        assert await store.client.acl_whoami() == "app"
    assert _databases(guarded) == {3}


async def test_a_wrong_password_is_unavailable_and_not_told(guarded: Server) -> None:
    async with opened(f"redis://app:not{ESCAPED}@127.0.0.1:{guarded.port}/0") as store:
        with pytest.raises(StoreUnavailable, match=r"(?i)redis://app:\*\*\*@127.*(invalid username|WRONGPASS)"):
            await store.run(store.verbs.overdue(1))


async def test_a_unix_socket_is_reached(unix_server: tuple[Server, Path]) -> None:
    server, socket = unix_server
    await live_a_life(f"unix://{socket}?db=2")
    assert _databases(server) == {2}
    server.flush()


async def test_tls_is_spoken_with_the_certificates_of_the_url(tls_server: TlsServer) -> None:
    await live_a_life(f"rediss://127.0.0.1:{tls_server.port}/0?{tls_server.query}")
    tls_server.server.flush()


@pytest.mark.parametrize("lacking", ["ssl_ca_certs", "ssl_certfile&ssl_keyfile"])
async def test_tls_without_the_certificates_is_refused(tls_server: TlsServer, lacking: str) -> None:
    files = [each for each in tls_server.query.split("&") if each.partition("=")[0] not in lacking.split("&")]
    async with opened(f"rediss://127.0.0.1:{tls_server.port}/0?{'&'.join(files)}") as store:
        with pytest.raises(StoreUnavailable):
            await store.run(store.verbs.overdue(1))


# ---- a client in place of a URL


@pytest.fixture(params=["async", "async, text", "blocking", "pool"])
async def client(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[Any]:
    match request.param:
        case "async":
            given: Any = redis.asyncio.Redis.from_url(f"{redis_url[:-1]}1")
        case "async, text":
            given = redis.asyncio.Redis.from_url(f"{redis_url[:-1]}1", decode_responses=True, protocol=3)
        case "blocking":
            given = redis.Redis.from_url(f"{redis_url[:-1]}1")
        case _:
            pool = redis.asyncio.BlockingConnectionPool.from_url(f"{redis_url[:-1]}1", max_connections=2)
            given = redis.asyncio.Redis(connection_pool=pool)
    yield given
    if isinstance(given, redis.Redis):
        given.close()
    else:
        await given.aclose()
        await given.connection_pool.disconnect()


async def test_a_client_tells_where_redis_is_and_is_left_alone(client: Any, server: Server) -> None:
    await live_a_life(client)
    assert _databases(server) == {1}
    pool = client.connection_pool
    assert not getattr(pool, "_created_connections", 0)
    assert not getattr(pool, "_in_use_connections", None)


async def test_a_client_brings_tls_to_both_sides(tls_server: TlsServer) -> None:
    files: dict[str, Any] = {"ssl_ca_certs": str(tls_server.ca)} | dict.fromkeys(
        ("ssl_certfile", "ssl_keyfile"), str(tls_server.certificate)
    )
    given = redis.asyncio.Redis(host="127.0.0.1", port=tls_server.port, ssl=True, **files)
    await live_a_life(given)
    tls_server.server.flush()
    with redis.Redis(host="127.0.0.1", port=tls_server.port, ssl=True, **files) as blocking:
        await live_a_life(blocking)
    tls_server.server.flush()


async def test_a_credential_provider_of_the_client_is_asked(guarded: Server) -> None:
    provider = redis.UsernamePasswordCredentialProvider("app", SECRET)
    given = redis.asyncio.Redis(host="127.0.0.1", port=guarded.port, credential_provider=provider)
    async with opened(given) as store:
        assert await store.client.acl_whoami() == "app"
    with opened_blocking(given) as blocking:
        assert blocking.client.acl_whoami() == "app"


@pytest.mark.parametrize("given", [None, 6379, object(), redis.ConnectionPool()])
def test_what_is_neither_url_nor_client_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="neither a URL nor a client of redis-py") as caught:
        SlotQueue(given)
    assert caught.value.argument == "redis"


def test_a_client_serves_every_event_loop_and_every_forked_child(redis_url: str) -> None:
    given = redis.asyncio.Redis.from_url(redis_url)
    store = AsyncStore(given, "ran")

    async def use() -> int:
        await store.run(store.verbs.overdue(1))
        used = int(await store.client.client_id())
        await store.close()
        return used

    def use_in_child(answers: Any) -> None:
        answers.put(asyncio.run(use()))

    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    mine = [asyncio.run(use()), asyncio.run(use())]
    child = context.Process(target=use_in_child, args=(answers,))
    child.start()
    used = {*mine, answers.get(timeout=60)}
    child.join(20)
    assert child.exitcode == 0
    assert len(used) == 3


async def test_what_the_document_says_of_clients_runs(guarded: Server) -> None:
    guarded.ask("ACL SETUSER app >secret")
    await documents.starts("client", {'host="localhost", port=6379': f'host="127.0.0.1", port={guarded.port}'})


def test_a_client_for_the_replicas_is_refused() -> None:
    behind = redis.asyncio.sentinel.Sentinel([("h", 1)]).slave_for("mymaster")
    with pytest.raises(ConfigurationError, match="give one for the primary"):
        SlotQueue(behind)


# ---- how URLs of several hosts are read


def test_a_url_of_sentinels_is_read() -> None:
    query = "sentinel_username=watch&sentinel_password=p2&socket_timeout=1"
    place = place_of(f"redis+sentinel://app:{ESCAPED}@one,two:5000,[::1]:5001/mymaster/2?{query}", "ran")
    assert isinstance(place, Sentinels)
    assert (place.hosts, place.service) == ((("one", 26379), ("two", 5000), ("::1", 5001)), "mymaster")
    assert place.options.said == {"username": "app", "password": SECRET, "db": 2, "socket_timeout": 1.0}
    assert place.own_options.said == {"username": "watch", "password": "p2", "socket_timeout": 1.0}
    assert place.said == "redis+sentinel://app:***@one,two:5000,[::1]:5001/mymaster/2"


def test_a_url_of_a_cluster_is_read() -> None:
    place = place_of(f"rediss+cluster://:{ESCAPED}@one,two:5000/0?ssl_ca_certs=x", "{ran}")
    assert isinstance(place, Cluster)
    assert (place.hosts, place.options.way) == ((("one", 6379), ("two", 5000)), "rediss")
    assert place.options.said == {"password": SECRET, "ssl_ca_certs": "x"}
    assert place.said == "rediss+cluster://:***@one,two:5000/0"


@pytest.mark.parametrize(
    "url, hint",
    [
        ("sentinel://host:26379", r"write redis\+sentinel://"),
        ("redis+sentinel://host:26379", "does not name its primary"),
        ("redis+sentinel://host/mymaster/0/1", "no Redis URL"),
        ("redis+sentinel://host:port/mymaster", "no Redis URL"),
        ("redis+sentinel:///mymaster", "no Redis URL"),
        ("redis+sentinel://host/mymaster?sentinel_nonsense=1", "no Redis URL"),
        ("redis+cluster://host/1", "the database 0 only"),
        ("redis+cluster://host?nonsense=1", "no Redis URL"),
        ("redis+nonsense://host", "no Redis URL"),
        ("localhost:46243", "begins with one of redis://, rediss://, unix://, redis.sentinel://, "),
    ],
)
def test_a_url_of_several_hosts_that_cannot_be_read_is_refused_without_its_password(url: str, hint: str) -> None:
    secret = url.replace("://", "://:s3cr3t@")
    for said in (url, secret):
        with pytest.raises(ConfigurationError, match=hint) as caught:
            SlotQueue(said, namespace="{ran}")
        assert "s3cr3t" not in "".join(traceback.format_exception(caught.value, limit=0))


@pytest.mark.parametrize("namespace", ["ran", "{}", "{ran", "ran}", "{}{ran}"])
def test_a_cluster_is_refused_at_once_where_the_namespace_has_no_hash_tag(namespace: str) -> None:
    with pytest.raises(ConfigurationError, match="give the namespace a hash tag") as caught:
        SlotQueue("redis+cluster://:s3cr3t@host:6379", namespace=namespace)
    assert caught.value.argument == "namespace"
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["redis+sentinel", "rediss+sentinel", "redis+cluster"])
def test_the_safe_form_of_a_url_of_several_hosts_hides_every_password(scheme: str) -> None:
    url = f"{scheme}://app:s3cr3t@one:1,two:2/mymaster/0?sentinel_password=s3cr3t"
    assert safe_url(url) == f"{scheme}://app:***@one:1,two:2/mymaster/0"


def _databases(server: Server) -> set[int]:
    lines = server.ask("INFO keyspace").splitlines()
    return {int(line[2:].partition(":")[0]) for line in lines if line.startswith("db")}
