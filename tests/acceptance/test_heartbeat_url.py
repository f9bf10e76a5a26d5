"""Outbound heartbeats: a dead-man's switch hears of ticks and of slots that are done; nothing waits for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from slotqueue import ConfigurationError, Every, SlotQueue, pings
from slotqueue.events import Event, PingFailed
from slotqueue.guard_events import RunDone
from tests.cli.test_ops import Fake

DONE = RunDone("ran:nightly:2026-10-02T03:00", "nightly", "w1", 1.0)


class Switch:
    """A dead-man's switch on this machine."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self.changed = threading.Condition()
        self.answer = 200
        switch = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(switch.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()
                with switch.changed:
                    switch.heard[self.path] += 1
                    switch.changed.notify_all()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def hears(self, path: str, times: int = 1) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.heard[path] >= times, 40)


@pytest.fixture
def switch() -> Iterator[Switch]:
    switch = Switch()
    yield switch
    switch.server.shutdown()
    switch.server.server_close()


async def test_while_a_replica_ticks_the_switch_hears_of_it(
    redis_url: str, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pings, "PING_SECONDS", 0.05)
    slots = SlotQueue(redis_url, enqueuer=Fake(), heartbeat_url=f"{switch.url}/ticks")
    async with slots:
        assert await asyncio.to_thread(switch.hears, "/ticks", 3)
    await asyncio.sleep(0.1)  # for one that was on its way
    heard = switch.heard["/ticks"]
    await asyncio.sleep(0.2)  # four pings' time: that nothing comes gives no sign
    assert switch.heard["/ticks"] == heard


async def test_without_redis_the_switch_hears_nothing(switch: Switch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pings, "PING_SECONDS", 0.05)
    slots = SlotQueue("redis://127.0.0.1:1/0", enqueuer=Fake(), heartbeat_url=f"{switch.url}/ticks")
    async with slots:
        await asyncio.sleep(0.7)
    assert not switch.heard


async def test_a_slot_that_is_done_is_told_for_its_job_alone(redis_url: str, switch: Switch) -> None:
    slots = SlotQueue(redis_url, enqueuer=Fake())
    slots.add("nightly", Every(hours=1), on_crash="skip", heartbeat_url=f"{switch.url}/nightly")
    slots.events(RunDone("ran:other:2026-10-02T03:00", "other", "w1", 1.0))
    slots.events(DONE)
    assert await asyncio.to_thread(switch.hears, "/nightly")
    slots.remove("nightly")
    slots.events(DONE)
    await slots.stop()
    assert switch.heard == {"/nightly": 1}


async def test_a_switch_that_fails_is_reported_without_the_secret_and_holds_nothing_up(
    redis_url: str, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pings, "_PAUSES", (0.01, 0.01))
    switch.answer = 500
    told = asyncio.Event()
    heard: list[Event] = []
    loop = asyncio.get_running_loop()

    def hook(event: Event) -> None:
        if isinstance(event, PingFailed):
            heard.append(event)
            loop.call_soon_threadsafe(told.set)

    slots = SlotQueue(redis_url, enqueuer=Fake(), on_event=hook)
    slots.add("nightly", Every(hours=1), on_crash="skip", heartbeat_url=f"{switch.url}/secret-uuid")
    slots.events(DONE)
    await asyncio.wait_for(told.wait(), 40)
    assert heard == [PingFailed("127.0.0.1", "HTTPStatusError")]
    assert switch.heard == {"/secret-uuid": 3}
    await slots.stop()


async def test_the_url_is_in_no_log_of_the_http_client(
    redis_url: str, switch: Switch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    slots = SlotQueue(redis_url, enqueuer=Fake())
    slots.add("nightly", Every(hours=1), on_crash="skip", heartbeat_url=f"{switch.url}/secret-uuid")
    slots.events(DONE)
    assert await asyncio.to_thread(switch.hears, "/secret-uuid")
    await slots.stop()
    await asyncio.to_thread(httpx.get, f"{switch.url}/theirs")
    assert "secret-uuid" not in caplog.text
    assert "/theirs" in caplog.text


@pytest.mark.parametrize("url", ["", "hc-ping.com/uuid", "ftp://host/x", 7])
def test_what_is_no_url_is_refused_at_once(url: Any) -> None:
    with pytest.raises(ConfigurationError, match="heartbeat_url: no URL that could be asked for"):
        SlotQueue("redis://localhost", heartbeat_url=url)
    slots = SlotQueue("redis://localhost", enqueuer=Fake())
    with pytest.raises(ConfigurationError, match="job 'a', heartbeat_url: no URL"):
        slots.add("a", Every(hours=1), on_crash="skip", heartbeat_url=url)
    assert not slots.jobs
