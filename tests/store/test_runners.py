"""Both runners of a command: what they send, how they fail, and whose connections they use."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import re
import socket
import socketserver
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest

from slotqueue.answers import Offer, Registered, Verdict, Word
from slotqueue.errors import ConfigurationError, StoreUnavailable
from slotqueue.protocols import Process
from slotqueue.store import AsyncStore, BlockingStore
from slotqueue.store.connections import safe_url
from tests.servers import Server
from tests.stopwatch import Stopwatch
from tests.store.stage import Stage

BOUND_S = 15.0
SECRET = "s3cr3t"


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[AsyncStore]:
    store = AsyncStore(redis_url, "ran")
    yield store
    await store.close()


@pytest.fixture
def blocking(redis_url: str) -> Iterator[BlockingStore]:
    store = BlockingStore(redis_url, "ran")
    yield store
    store.close()


async def _ask(store: AsyncStore) -> Registered:
    return await store.run(store.verbs.register(Process("r1"), [], epoch="e", is_last=True))


def _ask_blocking(store: BlockingStore) -> Registered:
    return store.run(store.verbs.register(Process("r1"), [], epoch="e", is_last=True))


async def test_both_runners_give_the_same_answers(store: AsyncStore, blocking: BlockingStore) -> None:
    first, second = await _ask(store), _ask_blocking(blocking)
    assert (first.epoch, first.jobs) == (second.epoch, second.jobs)


async def test_a_script_that_the_server_forgot_is_sent_again(
    store: AsyncStore, blocking: BlockingStore, server: Server
) -> None:
    await _ask(store)
    _ask_blocking(blocking)
    server.ask("SCRIPT FLUSH")
    await _ask(store)
    server.ask("SCRIPT FLUSH")
    _ask_blocking(blocking)


async def test_a_script_is_sent_by_its_digest(store: AsyncStore, server: Server) -> None:
    await _ask(store)
    server.ask("CONFIG RESETSTAT")
    for _ in range(5):
        await _ask(store)
    calls = server.ask("INFO commandstats")
    assert "cmdstat_evalsha:calls=5," in calls
    assert "cmdstat_eval:" not in calls
    assert "cmdstat_script" not in calls


async def test_a_connection_that_the_server_closed_is_replaced_without_a_word(
    store: AsyncStore, blocking: BlockingStore, server: Server
) -> None:
    for _ in range(3):
        await _ask(store)
        _ask_blocking(blocking)
        server.ask("CLIENT KILL TYPE normal")
    await _ask(store)
    _ask_blocking(blocking)


async def test_a_server_that_was_restarted_is_found_again(own_server: Server) -> None:
    store, blocking = AsyncStore(own_server.url, "ran"), BlockingStore(own_server.url, "ran")
    await _ask(store)
    _ask_blocking(blocking)
    own_server.stop()
    with pytest.raises(StoreUnavailable):
        await _ask(store)
    with pytest.raises(StoreUnavailable):
        _ask_blocking(blocking)
    own_server.start()
    await _ask(store)
    _ask_blocking(blocking)
    await store.close()
    blocking.close()


async def test_a_refused_connection_is_unavailable_at_once_and_says_where(own_server: Server) -> None:
    own_server.stop()
    where = rf"Redis at redis://127\.0\.0\.1:{own_server.port}/0: "
    with Stopwatch() as watch:
        store, blocking = AsyncStore(own_server.url, "ran"), BlockingStore(own_server.url, "ran")
        with pytest.raises(StoreUnavailable, match=where):
            await _ask(store)
        with pytest.raises(StoreUnavailable, match=where):
            _ask_blocking(blocking)
    assert watch.seconds < BOUND_S
    await store.close()


@contextmanager
def _black_hole() -> Iterator[str]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"redis://:{SECRET}@127.0.0.1:{listener.getsockname()[1]}/0"


async def test_a_black_hole_is_unavailable_in_bounded_time() -> None:
    with _black_hole() as url:
        store = AsyncStore(url, "ran")
        with Stopwatch() as watch, pytest.raises(StoreUnavailable):
            await _ask(store)
        assert watch.seconds < BOUND_S
        await store.close()


def test_a_black_hole_is_unavailable_in_bounded_time_for_a_thread() -> None:
    with _black_hole() as url:
        store = BlockingStore(url, "ran")
        with Stopwatch() as watch, pytest.raises(StoreUnavailable):
            _ask_blocking(store)
        assert watch.seconds < BOUND_S
        store.close()


@pytest.mark.alone
async def test_a_server_that_stops_answering_is_unavailable_and_recovers(own_server: Server) -> None:
    store = AsyncStore(own_server.url, "ran")
    await _ask(store)
    own_server.pause()
    with Stopwatch() as watch, pytest.raises(StoreUnavailable):
        await _ask(store)
    assert watch.seconds < BOUND_S
    own_server.resume()
    await _ask(store)
    await store.close()


async def test_a_read_only_server_is_unavailable_and_works_again_once_promoted(own_server: Server) -> None:
    stage = Stage(own_server.url)
    job = stage.job()
    offer = Offer(job, stage.slot(job))
    own_server.ask("REPLICAOF 127.0.0.1 1")
    with pytest.raises(StoreUnavailable, match=r"(?i)read.?only|MASTERDOWN|READONLY"):
        stage.claim(offer)
    store = AsyncStore(own_server.url, "ran")
    with pytest.raises(StoreUnavailable):
        await _ask(store)
    own_server.ask("REPLICAOF NO ONE")
    assert stage.claim(offer) == [Verdict(Word.WON)]
    await _ask(store)
    await store.close()
    stage.close()


async def test_a_read_only_server_costs_its_connection_so_that_the_name_is_looked_up_again(
    own_server: Server,
) -> None:
    store = AsyncStore(own_server.url, "ran")
    await _ask(store)
    before = _connections_received(own_server)
    own_server.ask("REPLICAOF 127.0.0.1 1")
    with pytest.raises(StoreUnavailable):
        await _ask(store)
    own_server.ask("REPLICAOF NO ONE")
    await _ask(store)
    ours = 3  # of this test: two REPLICAOF, one INFO
    assert _connections_received(own_server) - before > ours
    await store.close()


class _Loading(socketserver.BaseRequestHandler):
    """Answers each command as a server does that still reads its data from disk."""

    def handle(self) -> None:
        while said := self.request.recv(65536):
            commands = re.findall(rb"(?m)^\*\d+\r$", said)
            self.request.sendall(b"-LOADING Redis is loading the dataset in memory\r\n" * len(commands))


async def test_a_server_that_loads_its_data_is_unavailable() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Loading) as loading:
        loading.daemon_threads = True
        thread = threading.Thread(target=loading.serve_forever)
        thread.start()
        url = f"redis://127.0.0.1:{loading.server_address[1]}/0"
        store, blocking = AsyncStore(url, "ran"), BlockingStore(url, "ran")
        with pytest.raises(StoreUnavailable, match=r"(?i)loading"):
            await _ask(store)
        with pytest.raises(StoreUnavailable, match=r"(?i)loading"):
            await asyncio.to_thread(_ask_blocking, blocking)
        await store.close()
        blocking.close()
        loading.shutdown()
        thread.join()


async def test_a_server_that_is_out_of_memory_is_unavailable_and_nobody_wins(own_server: Server) -> None:
    stage = Stage(own_server.url)
    job = stage.job()
    offers = [Offer(job, stage.slot(job)) for _ in range(3)]
    own_server.ask("CONFIG SET maxmemory 1")
    with pytest.raises(StoreUnavailable, match="memory"):
        stage.claim(*offers)
    own_server.ask("CONFIG SET maxmemory 0")
    assert stage.redis.zcard("ran:open") == 0
    assert stage.claim(*offers) == [Verdict(Word.WON)] * 3
    stage.close()


# ---- passwords


SPELLINGS = [
    f"redis://:{SECRET}@{{host}}/0",
    f"redis://app:{SECRET}@{{host}}/0",
    f"redis://{{host}}/0?password={SECRET}",
    f"redis://{{host}}/0?username=app&password={SECRET}",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_no_password_is_in_any_error_or_repr(own_server: Server, spelling: str) -> None:
    own_server.ask("ACL SETUSER app on >other ~* +@all")
    url = spelling.format(host=f"127.0.0.1:{own_server.port}")
    store, blocking = AsyncStore(url, "ran"), BlockingStore(url, "ran")
    texts = [repr(store), repr(blocking), repr(store.client), repr(blocking.client), safe_url(url)]
    for is_up in (True, False):
        if not is_up:
            own_server.stop()
        try:
            await _ask(store)
        except StoreUnavailable as error:
            texts += [str(error), repr(error), *traceback.format_exception(error)]
        try:
            _ask_blocking(blocking)
        except StoreUnavailable as error:
            texts += [str(error), repr(error), *traceback.format_exception(error)]
    assert len(texts) > 10
    assert [text for text in texts if SECRET in text] == []
    await store.close()
    blocking.close()


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}/x@host:6379/0",
        f"redis://app:{SECRET}#x@host:6379/0",
        f"http://:{SECRET}@host",
        f"redis://:{SECRET}@host:port/0",
        f"redis://:{SECRET}@[host/0",
        f"redis://:{SECRET}@host/0?no_such_option=1",
        f"redis://:{SECRET}@host/0?socket_timeout={SECRET}",
        f"{SECRET}@host",
        "",
    ],
)
@pytest.mark.parametrize("kind", [AsyncStore, BlockingStore])
def test_a_url_that_cannot_be_read_is_refused_without_its_password(
    kind: Callable[[str, str], object], url: str
) -> None:
    with pytest.raises(ConfigurationError, match="redis://user:password@host:6379/0") as caught:
        kind(url, "ran")
    assert caught.value.argument == "redis"
    assert SECRET not in "".join(traceback.format_exception(caught.value, limit=0))


@pytest.mark.parametrize(
    "url", [f"redis://:12?{SECRET}@host:6379", f"redis://host/{SECRET}@x", f"redis://h?x={SECRET}"]
)
def test_the_safe_form_of_a_url_hides_what_may_be_a_password(url: str) -> None:
    assert SECRET not in safe_url(url)


@pytest.mark.parametrize(
    "url, safe",
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://app@host/1", "redis://app@host/1"),
        ("redis://app:pw@host/1", "redis://app:***@host/1"),
        ("rediss://:p%40w@host:1234", "rediss://:***@host:1234"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("redis://:p/w@host:6379/0", "redis://***@host:6379/0"),
        ("nonsense", "the given text"),
    ],
)
def test_the_safe_form_of_a_url_still_says_where(url: str, safe: str) -> None:
    assert safe_url(url) == safe


# ---- processes and loops


def test_another_event_loop_gets_connections_of_its_own(redis_url: str) -> None:
    store = AsyncStore(redis_url, "ran")

    async def use() -> int:
        await asyncio.gather(*(_ask(store) for _ in range(5)))
        return id(store.client)

    async def use_and_close() -> int:
        used = await use()
        await store.close()
        return used

    used = [asyncio.run(use_and_close()), asyncio.run(use_and_close())]
    assert used[0] != used[1]


def test_a_loop_that_ended_without_a_close_does_not_stop_the_next(redis_url: str) -> None:
    store = AsyncStore(redis_url, "ran")

    async def use() -> None:
        await _ask(store)
        await store.client.connection_pool.disconnect()

    async def use_and_close() -> None:
        await _ask(store)
        await store.close()

    asyncio.run(use())
    asyncio.run(use_and_close())


async def test_closing_in_a_loop_that_never_used_it_is_no_error(redis_url: str) -> None:
    await AsyncStore(redis_url, "ran").close()


def _ids_after_fork(store: BlockingStore, answers: object) -> None:
    """In the child: use the inherited store, and say which connection of the server it is."""
    _ask_blocking(store)
    ids = [store.client.client_id() for _ in range(3)]
    answers.put((os.getpid(), set(ids)))  # type: ignore[attr-defined]


def test_a_forked_child_has_a_connection_of_its_own(blocking: BlockingStore) -> None:
    _ask_blocking(blocking)
    mine = {blocking.client.client_id()}
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    children = [context.Process(target=_ids_after_fork, args=(blocking, answers)) for _ in range(3)]
    for child in children:
        child.start()
    found = dict(answers.get(timeout=60) for _ in children)
    for child in children:
        child.join(20)
        assert child.exitcode == 0
    for ids in found.values():
        assert len(ids) == 1
        assert not ids & mine
    assert len(set.union(*found.values())) == len(children)
    assert {blocking.client.client_id()} == mine
    _ask_blocking(blocking)


def _use_async_after_fork(store: AsyncStore, answers: object) -> None:
    async def use() -> int:
        await _ask(store)
        found = int(await store.client.client_id())
        await store.close()
        return found

    found = asyncio.run(use())
    gc.collect()  # what is let go here must not be taken from the parent's event loop
    answers.put(found)  # type: ignore[attr-defined]


def test_a_forked_child_has_an_async_connection_of_its_own(redis_url: str) -> None:
    store = AsyncStore(redis_url, "ran")
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    async def use() -> tuple[int, int]:
        await _ask(store)
        mine = int(await store.client.client_id())
        child = context.Process(target=_use_async_after_fork, args=(store, answers))
        child.start()
        theirs = await asyncio.to_thread(answers.get, timeout=60)
        await asyncio.to_thread(child.join, 20)
        assert child.exitcode == 0
        await _ask(store)
        assert int(await store.client.client_id()) == mine
        await store.close()
        return mine, theirs

    mine, theirs = asyncio.run(use())
    assert mine != theirs


async def test_a_call_that_is_cancelled_leaves_no_answer_for_the_next_one(store: AsyncStore) -> None:
    await _ask(store)
    for wait in (0, 0.0001, 0.0005, 0.001, 0.002):
        task = asyncio.create_task(store.run(store.verbs.overdue(10)))
        await asyncio.sleep(wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await _ask(store)).epoch == "e"


async def test_many_calls_at_once_each_get_their_own_answer(store: AsyncStore) -> None:
    keys = [f"ran:x:2026-10-02T03:00:{second:02}" for second in range(50)]
    calls = [store.run(store.verbs.take_over([key], [""], replica="r1", contact_ms=0)) for key in keys]
    assert [taken.key for (taken,) in await asyncio.gather(*calls)] == keys


def test_threads_share_a_store(blocking: BlockingStore) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _ask_blocking(blocking), range(100)))
    assert {answer.epoch for answer in answers} == {"e"}


def _connections_received(server: Server) -> int:
    line = next(line for line in server.ask("INFO stats").splitlines() if line.startswith("total_connections"))
    return int(line.partition(":")[2])
