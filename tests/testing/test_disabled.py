from __future__ import annotations

import asyncio
import threading

import pytest

from slotqueue import Every, Policy, SlotQueue
from slotqueue.background import BackgroundTicker
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.events import Event, TickingDisabled
from tests.waiting import eventually


class App:
    def __init__(self, url: str) -> None:
        self.told: list[Event] = []
        defaults = Policy(on_crash="skip")
        self.slots = SlotQueue(url, enqueuer=ArqEnqueuer(), defaults=defaults, on_event=self.told.append)
        self.slots.add("mail", Every(seconds=1))


@pytest.mark.parametrize("said", ["1", "true", " YES "])
async def test_nothing_ticks_where_the_environment_says_so_and_the_log_says_it_once(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTQUEUE_DISABLED", said)
    app = App("redis://nowhere.invalid:1/0")
    async with app.slots:
        assert not app.slots.is_ready
        assert len(asyncio.all_tasks()) == 1, "nothing goes on in the background"
    async with app.slots.lifespan():
        assert len(asyncio.all_tasks()) == 1
    app.slots.start_thread()
    assert not [thread for thread in threading.enumerate() if thread.name == "slotqueue"]
    assert app.slots.stop_thread()
    stopping = asyncio.Event()
    running = asyncio.create_task(app.slots.run(stopping))
    await asyncio.sleep(0)
    assert not running.done(), "who waits for it waits until it is told to stop"
    stopping.set()
    await running
    ticker = BackgroundTicker(app.slots)
    ticker.start()
    assert ticker.stop()
    ticker.check()
    assert app.told == [TickingDisabled("SLOTQUEUE_DISABLED")]


async def test_a_pass_that_a_test_asks_for_is_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch, slotqueue_redis: str
) -> None:
    monkeypatch.setenv("SLOTQUEUE_DISABLED", "1")
    app = App(slotqueue_redis)
    await app.slots.tick()
    assert not await app.slots.sweep()
    assert app.slots.is_ready
    await app.slots.close()


@pytest.mark.parametrize("said", ["", "0", "false", "off"])
async def test_everything_ticks_where_it_says_nothing_of_the_kind(
    said: str, monkeypatch: pytest.MonkeyPatch, slotqueue_redis: str
) -> None:
    monkeypatch.setenv("SLOTQUEUE_DISABLED", said)
    app = App(slotqueue_redis)
    async with app.slots:
        await eventually(lambda: app.slots.is_ready)
