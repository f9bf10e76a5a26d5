"""Hooks of an application: sync or async, several, and none can do harm."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from slotqueue import hooks as hooks_module
from slotqueue.events import Event, Events, SlotTaken

EVENT = SlotTaken("ran:a:2026-11-30T12:00", "a", "r1")


def test_each_hook_is_called_whatever_the_others_raise(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("the pager is down")

    events = Events(broken, heard.append)
    events.hooks.add(heard.append)
    with caplog.at_level(logging.ERROR, logger="slotqueue"):
        events(EVENT)
    assert heard == [EVENT, EVENT]
    assert "on_event raised for SlotTaken" in caplog.text


async def test_an_async_hook_runs_in_the_loop_and_what_it_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[tuple[Event, asyncio.AbstractEventLoop]] = []

    async def hook(event: Event) -> None:
        await asyncio.sleep(0)
        heard.append((event, asyncio.get_running_loop()))

    async def broken(event: Event) -> None:
        raise RuntimeError("the pager is down")

    events = Events(hook, broken)
    with caplog.at_level(logging.ERROR, logger="slotqueue"):
        events(EVENT)
        assert heard == []
        await events.hooks.drain(5)
    assert heard == [(EVENT, asyncio.get_running_loop())]
    assert "on_event raised for SlotTaken" in caplog.text


def test_without_a_loop_an_async_hook_runs_in_a_thread_of_its_own() -> None:
    done, threads = threading.Event(), list[str]()

    async def hook(event: Event) -> None:
        threads.append(threading.current_thread().name)
        done.set()

    Events(hook)(EVENT)
    assert done.wait(5)
    assert threads == ["slotqueue-hooks"]


async def test_a_hook_that_does_not_keep_up_loses_events_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks_module, "_MOST_PENDING", 3)
    heard, gate = list[Event](), asyncio.Event()

    async def slow(event: Event) -> None:
        await gate.wait()
        heard.append(event)

    events = Events(slow)
    with caplog.at_level(logging.WARNING, logger="slotqueue"):
        for _ in range(10):
            events(EVENT)
    gate.set()
    await events.hooks.drain(5)
    assert len(heard) == 3
    assert caplog.text.count("does not keep up") == 1
