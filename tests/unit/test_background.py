"""A `SlotQueue` in a thread: it ticks, takes jobs in, stops in time, and never dies silently."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from slotqueue import ConfigurationError, Every, Policy, SlotQueue
from slotqueue.background import BackgroundTicker
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Waiting
from tests.waiting import wait_until


class Queue:
    """An enqueuer that keeps what it is given."""

    kind = "kept"

    def __init__(self) -> None:
        self.keys: list[str] = []

    def check(self, job: Job) -> None: ...

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.keys += [message.slip.key for message in messages]
        return [Accepted()] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None: ...


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def ticker(redis_url: str, queue: Queue) -> Iterator[BackgroundTicker[SlotQueue]]:
    slots = SlotQueue(redis_url, enqueuer=queue, defaults=Policy(on_crash="skip"))
    slots.add("first", Every(seconds=1))
    ticker = BackgroundTicker(slots)
    yield ticker
    ticker.stop()


def test_it_ticks_beside_its_host_and_stops_when_told(ticker: BackgroundTicker[SlotQueue], queue: Queue) -> None:
    ticker.start()
    wait_until(lambda: len(queue.keys) >= 2)
    began = time.monotonic()
    assert ticker.stop()
    assert time.monotonic() - began < 5
    assert "slotqueue" not in [thread.name for thread in threading.enumerate()]
    assert ticker.stop()
    ticker.check()


def test_it_takes_jobs_in_while_it_ticks(ticker: BackgroundTicker[SlotQueue], queue: Queue) -> None:
    ticker.start()
    ticker.call(lambda: ticker.slots.add("second", Every(seconds=1)))
    wait_until(lambda: any(key.startswith("ran:second:") for key in queue.keys))


def test_a_thread_that_ends_by_itself_is_an_error_of_its_host(ticker: BackgroundTicker[SlotQueue]) -> None:
    async def run(stopping: asyncio.Event | None = None) -> None:
        raise RuntimeError("nobody foresaw this")

    ticker.slots.run = run  # type: ignore[method-assign]
    ticker.start()
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        wait_until(ticker.check)


def test_it_starts_once(ticker: BackgroundTicker[SlotQueue]) -> None:
    ticker.start()
    with pytest.raises(ConfigurationError, match="ticks in a thread already"):
        ticker.start()


def test_it_may_be_told_to_stop_before_it_started(ticker: BackgroundTicker[SlotQueue]) -> None:
    assert ticker.stop()
