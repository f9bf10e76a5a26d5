"""Ending code in the main thread, and runs that lose their lease there."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from slotqueue.answers import Verdict, Word
from slotqueue.guard_events import LeaseLost
from slotqueue.interruption import Interruption, RunInterrupted
from slotqueue.sync_hold import SyncHold
from tests.unit.guard_stage import AWAY, Script, slip, sync_guard
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(Interruption.here() is None, reason="no signals between threads here"),
]


def opened() -> Interruption:
    found = Interruption.here()
    assert found is not None
    found.open()
    return found


def test_a_sleep_is_ended_at_once_and_the_handler_that_was_there_returns() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    interruption = opened()
    threading.Timer(0.1, interruption.interrupt).start()
    started = time.monotonic()
    with pytest.raises(RunInterrupted):
        time.sleep(10)
    assert time.monotonic() - started < 5
    interruption.close()
    assert signal.getsignal(signal.SIGUSR1) is before


def test_signals_of_others_are_passed_on() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        interruption = opened()
        signal.raise_signal(signal.SIGUSR1)
        interruption.close()
        interruption.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]


def test_an_interruption_that_comes_too_late_is_swallowed() -> None:
    for _ in range(50):
        interruption = opened()
        thread = threading.Thread(target=interruption.interrupt)
        try:
            thread.start()
            interruption.close()
        except RunInterrupted:
            interruption.close()
        thread.join()


def test_a_thread_that_is_not_the_main_one_has_none() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(Interruption.here()))
    thread.start()
    thread.join()
    assert found == [None]


@pytest.mark.parametrize("on_crash", ["complete", "skip"])
def test_past_its_lease_a_complete_run_is_interrupted_and_a_skip_run_goes_on(on_crash: str) -> None:
    events: list[object] = []
    guard = sync_guard(Script(heartbeat=[AWAY]), events.append)
    try:
        hold = guard.begin(slip(on_crash=on_crash), from_fence="", interruption=Interruption.here())
        assert isinstance(hold, SyncHold)
        if on_crash == "complete":
            with pytest.raises(RunInterrupted), hold:
                time.sleep(10)
            assert hold.outcome is Word.STALE
            assert not hold.is_taken_over
        else:
            with hold:
                wait_until(lambda: any(isinstance(event, LeaseLost) for event in events))
    finally:
        guard.stop()
    (lost,) = [event for event in events if isinstance(event, LeaseLost)]
    assert lost.is_cancelled is (on_crash == "complete")


def test_a_run_that_was_taken_over_is_interrupted_whatever_its_policy() -> None:
    guard = sync_guard(Script(heartbeat=[[Verdict(Word.STALE)]]), list[object]().append)
    try:
        hold = guard.begin(slip(on_crash="skip"), from_fence="", interruption=Interruption.here())
        assert isinstance(hold, SyncHold)
        with pytest.raises(RunInterrupted), hold:
            time.sleep(10)
        assert hold.is_taken_over
    finally:
        guard.stop()
