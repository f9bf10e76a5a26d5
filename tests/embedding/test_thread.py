"""`start_thread`: one thread a process, none after a fork, jobs added and removed from any thread."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from types import ModuleType

import pytest

from slotqueue import ConfigurationError, Every, Policy, SlotQueue
from slotqueue.events import Event, LoopDied, PassFailed, SlotClaimed, StoreLost
from slotqueue.ticker import Ticker
from tests.stopwatch import Stopwatch
from tests.waiting import wait_until


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def slots(redis_url: str, told: list[Event]) -> Iterator[SlotQueue]:
    slots = SlotQueue(redis_url, defaults=Policy(on_crash="skip"), on_event=told.append)
    yield slots
    slots.stop_thread()


def _threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("slotqueue")


def test_it_ticks_beside_the_application_in_one_thread(slots: SlotQueue) -> None:
    ran = threading.Event()
    slots.job(Every(seconds=1), name="job")(ran.set)
    assert not slots.is_ready
    slots.start_thread()
    slots.start_thread()
    assert _threads() == 1
    assert ran.wait(15)
    assert slots.is_ready
    with Stopwatch() as watch:
        assert slots.stop_thread()
    assert watch.seconds < 5
    assert (_threads(), slots.is_ready) == (0, False)


@pytest.mark.parametrize(
    "module, ask, patched",
    [("gevent.monkey", "is_module_patched", "threading"), ("eventlet.patcher", "is_monkey_patched", "thread")],
)
def test_green_threads_are_refused(
    slots: SlotQueue, monkeypatch: pytest.MonkeyPatch, module: str, ask: str, patched: str
) -> None:
    library = ModuleType(module)
    setattr(library, ask, lambda what: what == patched)
    monkeypatch.setitem(sys.modules, module, library)
    with pytest.raises(ConfigurationError, match=f"{module.partition('.')[0]} has replaced threads .*`slotqueue run"):
        slots.start_thread()
    assert _threads() == 0


def test_it_starts_again_after_a_stop(slots: SlotQueue) -> None:
    for _ in range(2):
        slots.start_thread()
        wait_until(lambda: slots.is_ready)
        assert slots.stop_thread()


def test_jobs_come_and_go_from_another_thread(slots: SlotQueue) -> None:
    slots.start_thread()
    wait_until(lambda: slots.is_ready)
    ran = threading.Event()
    slots.job(Every(seconds=1), name="job")(ran.set)
    assert ran.wait(15)
    slots.remove("job")
    ran.clear()
    if ran.wait(1.5):  # it was about to run
        ran.clear()
        assert not ran.wait(1.5)


def test_a_ticker_that_dies_is_critical_and_not_ready(
    slots: SlotQueue, told: list[Event], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def dies(_self: Ticker, _stopping: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(Ticker, "run", dies)
    slots.start_thread()
    wait_until(lambda: any(isinstance(event, LoopDied) for event in told))
    assert not slots.is_ready
    assert {record.levelname for record in caplog.records if "nobody foresaw this" in record.message} == {"CRITICAL"}


def test_nothing_connects_before_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        slots = SlotQueue(f"redis://127.0.0.1:{server.getsockname()[1]}", defaults=Policy(on_crash="skip"))
        slots.job(Every(seconds=1), name="job")(print)
        with pytest.raises(TimeoutError):
            server.accept()


def test_the_application_may_ask_while_the_thread_ticks(slots: SlotQueue, told: list[Event]) -> None:
    slots.job(Every(seconds=1), name="job")(print)
    slots.start_thread()
    wait_until(lambda: slots.is_ready)

    async def ask() -> int:
        try:
            return len((await slots.ops.status()).jobs)
        finally:
            await slots.store.close()

    for _ in range(20):
        assert asyncio.run(ask()) == 1
    wait_until(lambda: any(isinstance(event, SlotClaimed) for event in told))
    assert not [event for event in told if isinstance(event, PassFailed | StoreLost)]


@pytest.mark.processes
def test_a_forked_child_does_not_tick_until_it_is_told_to_and_then_as_itself(redis_url: str) -> None:
    program = f"""
        import os, time
        import redis
        from slotqueue import SlotQueue

        def wait():
            until = time.monotonic() + 15
            while not slots.is_ready and time.monotonic() < until:
                time.sleep(0.02)
            return slots.is_ready

        slots = SlotQueue({redis_url!r})
        slots.start_thread()
        assert wait()
        child = os.fork()
        if child == 0:
            assert not slots.is_ready
            slots.start_thread()
            assert wait()
            os._exit(0 if slots.stop_thread() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert slots.is_ready
        mine = redis.Redis.from_url({redis_url!r}, decode_responses=True).hkeys("ran:replicas")
        assert [int(each.split("-")[-2]) for each in mine] == [os.getpid()], mine
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=40)


def test_a_process_that_exits_leaves_the_registry(redis_url: str) -> None:
    import redis

    program = f"""
        import time
        from slotqueue import SlotQueue
        slots = SlotQueue({redis_url!r})
        slots.start_thread()
        while not slots.is_ready:
            time.sleep(0.02)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
    with redis.Redis.from_url(redis_url) as client:
        assert client.hlen("ran:replicas") == 0
