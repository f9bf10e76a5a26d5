"""The heartbeat thread, and the guard of code without an event loop."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from slotqueue.answers import Dropped, Verdict, Word
from slotqueue.current import current_slot
from slotqueue.errors import NotInSlot, StoreUnavailable
from slotqueue.events import PassFailed
from slotqueue.guard import SyncGuard, worker_process
from slotqueue.guard_events import HeartbeatBack, HeartbeatTroubled, LeaseLost, WorkerEnlisted
from slotqueue.sync_hold import SyncHold
from tests.unit.guard_stage import AWAY, Script, slip, sync_guard
from tests.waiting import wait_until

pytestmark = pytest.mark.alone  # leases of a second


@contextmanager
def guarding(script: Script, events: list[object] | None = None) -> Iterator[SyncGuard]:
    guard = sync_guard(script, (events if events is not None else []).append)
    try:
        yield guard
    finally:
        script.go.set()
        guard.stop()


def held(guard: SyncGuard, lease: float = 1) -> SyncHold:
    answer = guard.begin(slip(lease=lease), from_fence="")
    assert isinstance(answer, SyncHold)
    return answer


def test_a_normal_end_finishes_and_an_error_fails() -> None:
    script = Script()
    with guarding(script) as guard:
        with held(guard) as slot:
            assert current_slot() is slot
        with pytest.raises(NotInSlot):
            current_slot()
        with pytest.raises(ValueError, match="no"), held(guard):
            raise ValueError("no")
    assert script.verbs_asked() == ["begin", "finish", "begin", "fail"]


@pytest.mark.parametrize("handed_back", [Verdict(Word.YES), AWAY])
def test_a_begin_that_a_failover_may_forget_is_handed_back(handed_back: Verdict | StoreUnavailable) -> None:
    script = Script(postpone=[handed_back])
    script.doubt = "0 of 1 replicas"
    with guarding(script) as guard:
        with pytest.raises(StoreUnavailable):
            guard.begin(slip(), from_fence="", patience=0)
        script.doubt = ""
        with held(guard):
            pass
    assert script.verbs_asked() == ["begin", "postpone", "begin", "finish"]
    assert len({run.token for verb, run, *_ in script.asked if verb == "begin"}) == 1


def test_a_begin_is_repeated_and_then_handed_back() -> None:
    script = Script(begin=[AWAY, Dropped(Word.OVER), AWAY])
    with guarding(script) as guard:
        assert guard.begin(slip(), from_fence="") == Dropped(Word.OVER)
        with pytest.raises(StoreUnavailable):
            guard.begin(slip(), from_fence="", patience=0.2)


def test_an_end_is_repeated_until_it_is_written() -> None:
    script = Script(finish=[AWAY, AWAY, Verdict(Word.YES)])
    with guarding(script) as guard:
        hold = held(guard)
        with hold:
            pass
    assert hold.outcome is Word.YES


def test_a_run_in_a_thread_that_was_taken_over_is_reported_once() -> None:
    script, events = Script(heartbeat=[[Verdict(Word.STALE)]], finish=[Verdict(Word.STALE)]), list[object]()
    with guarding(script, events) as guard:
        hold = held(guard)
        with hold:
            wait_until(lambda: sum(verb == "heartbeat" for verb, *_ in script.asked) >= 2)
    assert hold.outcome is Word.STALE
    assert sum(isinstance(event, LeaseLost) for event in events) == 1


def test_one_heartbeat_serves_all_runs_in_one_round_trip() -> None:
    script = Script()
    with guarding(script) as guard, held(guard), held(guard, lease=2), held(guard, lease=60):
        wait_until(lambda: any(verb == "heartbeat" for verb, *_ in script.asked))
        assert [each.name.startswith("slotqueue heartbeat") for each in threading.enumerate()].count(True) == 1
    beats = [runs for verb, *runs in script.asked if verb == "heartbeat"]
    assert len(beats[0]) == 3


def test_leases_are_renewed_every_third_of_the_shortest() -> None:
    script = Script()
    with guarding(script) as guard, held(guard):
        time.sleep(1.2)  # the figure is about time itself
        assert 3 <= sum(verb == "heartbeat" for verb, *_ in script.asked) <= 4


def test_trouble_is_reported_once_and_tried_again_sooner() -> None:
    script, events = Script(heartbeat=[AWAY, AWAY, AWAY, [Verdict(Word.YES)]]), list[object]()
    with guarding(script, events) as guard, held(guard) as _:
        wait_until(lambda: any(isinstance(event, HeartbeatBack) for event in events), within=1.2)
    assert sum(isinstance(event, HeartbeatTroubled) for event in events) == 1


def test_nothing_ends_the_heartbeat() -> None:
    script, events = Script(heartbeat=[ValueError("odd"), [Verdict(Word.YES)]]), list[object]()
    with guarding(script, events) as guard:
        hold = held(guard)
        with hold:
            wait_until(lambda: hold.lease.left() > 0.5 and len(script.asked) > 2)
    assert any(isinstance(event, PassFailed) for event in events)


def test_a_slot_whose_keys_are_damaged_does_not_make_the_heart_race() -> None:
    script = Script(heartbeat=[[Verdict(Word.BROKEN, "what")]])
    with guarding(script) as guard, held(guard):
        time.sleep(0.8)  # the figure is about time itself
        assert sum(verb == "heartbeat" for verb, *_ in script.asked) <= 3


def test_a_worker_enlists_as_soon_as_it_can_and_leaves_at_its_end() -> None:
    script, events = Script(enlist=[AWAY, AWAY, 0]), list[object]()
    with guarding(script, events) as guard:
        before = time.monotonic()
        guard.start()
        assert time.monotonic() - before < 0.5
        wait_until(lambda: events and isinstance(events[-1], WorkerEnlisted))
    assert script.verbs_asked() == ["enlist", "enlist", "enlist", "leave"]
    assert script.closed == 2


def test_a_guard_that_never_ran_anything_stops_at_once() -> None:
    script = Script()
    with guarding(script):
        pass
    assert script.asked == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_has_a_heartbeat_of_its_own() -> None:
    script = Script()
    with guarding(script) as guard, held(guard, lease=60):
        child = os.fork()
        if child == 0:
            try:
                script.asked.clear()
                with held(guard):
                    wait_until(lambda: any(verb == "heartbeat" for verb, *_ in script.asked))
                beats = [runs for verb, *runs in script.asked if verb == "heartbeat"]
                os._exit(0 if [len(runs) for runs in beats[:1]] == [1] else 3)
            finally:
                os._exit(4)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_no_two_workers_are_called_the_same() -> None:
    names = {worker_process(("arq:send",)).id for _ in range(50)}
    assert len(names) == 50
    assert worker_process(("arq:send",), worker="arq").tasks == ("arq:send",)
