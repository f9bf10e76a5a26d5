"""The guard of async code: what it tells the store, and when it stops a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import pytest

from slotqueue.answers import Dropped, Verdict, Word
from slotqueue.current import current_slot
from slotqueue.errors import NotInSlot, StoreUnavailable
from slotqueue.guard import AsyncGuard
from slotqueue.guard_events import EndUnwritten, LeaseLost, MessageDropped, RunBegan, RunDone, RunFailed, RunPostponed
from slotqueue.hold import AsyncHold, Fail, Postpone, describe
from slotqueue.protocols import ANY_FENCE
from tests.unit.guard_stage import AWAY, Script, async_guard, slip
from tests.waiting import eventually

pytestmark = pytest.mark.alone  # leases of a second


async def held(guard: AsyncGuard, **about: float | str) -> AsyncHold:
    answer = await guard.begin(slip(**about), from_fence=ANY_FENCE)  # type: ignore[arg-type]
    assert isinstance(answer, AsyncHold)
    return answer


@asynccontextmanager
async def guarding(script: Script, events: list[object] | None = None) -> AsyncIterator[AsyncGuard]:
    guard = async_guard(script, (events if events is not None else []).append)
    try:
        yield guard
    finally:
        script.go.set()
        await guard.stop()


# ---- begin


async def test_a_begin_without_an_answer_is_repeated_with_the_same_token() -> None:
    script = Script(begin=[AWAY, AWAY, Dropped(Word.DONE)])
    events: list[object] = []
    async with guarding(script, events) as guard:
        assert await guard.begin(slip(), from_fence=ANY_FENCE) == Dropped(Word.DONE)
    assert script.verbs_asked() == ["begin"] * 3
    assert len({run.token for _, run in script.asked}) == 1
    assert events == [MessageDropped(slip().key, "digest", "done")]


async def test_a_begin_ahead_of_its_time_is_asked_again_in_time() -> None:
    script = Script(begin=[Dropped(Word.EARLY, "40"), Dropped(Word.EARLY, "1"), Dropped(Word.DONE)])
    async with guarding(script) as guard:
        began = time.monotonic()
        assert await guard.begin(slip(), from_fence=ANY_FENCE) == Dropped(Word.DONE)
    assert time.monotonic() - began >= 0.041
    assert len({run.token for _, run in script.asked}) == 1
    assert script.verbs_asked() == ["begin"] * 3


async def test_two_deliveries_have_two_tokens() -> None:
    script = Script(begin=[Dropped(Word.BUSY)])
    async with guarding(script) as guard:
        await guard.begin(slip(), from_fence=ANY_FENCE)
        await guard.begin(slip(), from_fence=ANY_FENCE)
    assert len({run.token for _, run in script.asked}) == 2


async def test_the_next_delivery_of_a_begin_without_an_answer_finds_its_own_lease() -> None:
    script = Script(begin=[AWAY])
    async with guarding(script) as guard:
        with pytest.raises(StoreUnavailable):
            await guard.begin(slip(), from_fence=ANY_FENCE, patience=0)
        with pytest.raises(StoreUnavailable):
            await guard.begin(slip(), from_fence=ANY_FENCE, patience=0)
    assert len({run.token for _, run in script.asked}) == 1


@pytest.mark.parametrize("handed_back", [Verdict(Word.YES), Verdict(Word.STALE), AWAY])
async def test_a_begin_that_a_failover_may_forget_is_handed_back_and_its_message_too(
    handed_back: Verdict | StoreUnavailable,
) -> None:
    script, events = Script(postpone=[handed_back]), list[object]()
    script.doubt = "0 of 1 replicas"
    async with guarding(script, events) as guard:
        with pytest.raises(StoreUnavailable):
            await guard.begin(slip(), from_fence=ANY_FENCE, patience=0)
        script.doubt = ""
        async with await held(guard):
            pass
    assert script.verbs_asked() == ["begin", "postpone", "begin", "finish"]
    assert len({run.token for verb, run, *_ in script.asked if verb == "begin"}) == 1, "it finds its own lease"
    told = [event for event in events if isinstance(event, RunPostponed)]
    assert told == [RunPostponed(slip().key, "digest", "0 of 1 replicas", 0)] * (handed_back == Verdict(Word.YES))


async def test_an_answer_that_lets_nothing_run_needs_no_acknowledgement() -> None:
    script = Script(begin=[Dropped(Word.DONE)])
    script.doubt = "0 of 1 replicas"
    async with guarding(script) as guard:
        assert await guard.begin(slip(), from_fence=ANY_FENCE) == Dropped(Word.DONE)
    assert script.verbs_asked() == ["begin"]


async def test_a_store_that_stays_away_ends_the_begin_in_time() -> None:
    async with guarding(Script(begin=[AWAY])) as guard:
        before = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await guard.begin(slip(), from_fence=ANY_FENCE, patience=0.4)
        assert 0.3 < time.monotonic() - before < 1


async def test_a_cancellation_during_begin_hands_the_granted_run_back() -> None:
    script = Script()
    script.waiting.add("begin")
    async with guarding(script) as guard:
        beginning = asyncio.create_task(guard.begin(slip(), from_fence=ANY_FENCE))
        await script.has_arrived()
        beginning.cancel()
        _, waiting = await asyncio.wait({beginning}, timeout=0.05)  # time enough for a begin that gives in
        assert waiting
        script.go.set()
        with pytest.raises(asyncio.CancelledError):
            await beginning
    assert script.verbs_asked() == ["begin", "postpone"]


# ---- the end


async def test_an_end_that_is_not_heard_is_given_up_when_the_process_must_go() -> None:
    script, events = Script(), list[object]()
    script.waiting.add("finish")
    async with guarding(script, events) as guard:
        hold = await guard.begin(slip(), from_fence=ANY_FENCE)
        assert isinstance(hold, AsyncHold)

        async def run() -> None:
            async with hold:
                pass

        running = asyncio.create_task(run())
        await script.has_arrived()
        hold.give_up_at(asyncio.get_running_loop().time())
        await asyncio.wait_for(running, 1)
        assert hold.outcome is None
        assert [type(event).__name__ for event in events][-1] == "EndUnwritten"
        script.go.set()


async def test_a_normal_end_finishes_the_run() -> None:
    script, events = Script(), list[object]()
    async with guarding(script, events) as guard:
        hold = await held(guard)
        async with hold:
            assert list(guard.heartbeat._leases) == [hold.run.token]
        assert not guard.heartbeat._leases, "what is over is renewed no longer"
    assert hold.outcome is Word.YES
    assert script.verbs_asked() == ["begin", "finish"]
    began, done = events
    assert isinstance(began, RunBegan)
    assert isinstance(done, RunDone)
    assert 0 <= done.seconds < 5


async def test_an_error_fails_the_run_and_goes_on_its_way() -> None:
    script, events = Script(), list[object]()
    async with guarding(script, events) as guard:
        with pytest.raises(ValueError, match="no"):
            async with await held(guard):
                raise ValueError("no")
    assert script.asked[-1] == ("fail", "ValueError: no")
    assert events[-1] == RunFailed(slip().key, "digest", "dead", "ValueError: no")


async def test_the_judge_says_what_an_exception_means() -> None:
    script = Script()

    def judge(error: BaseException) -> Postpone | Fail:
        return Postpone("later", 500)

    async with guarding(script) as guard:
        hold = await guard.begin(slip(), from_fence=ANY_FENCE, judge=judge)
        assert isinstance(hold, AsyncHold)
        with pytest.raises(ValueError, match="no"):
            async with hold:
                raise ValueError("no")
    assert script.asked[-1] == ("postpone", 500, "later")


async def test_a_cancellation_while_the_end_is_written_does_not_stop_the_writing() -> None:
    script = Script()
    script.waiting.add("finish")

    async def work(guard: AsyncGuard) -> str:
        async with await held(guard):
            pass
        return "well"

    async with guarding(script) as guard:
        working = asyncio.create_task(work(guard))
        await script.has_arrived()
        working.cancel()
        await asyncio.wait({working}, timeout=0.05)  # time enough for a writing that gives in
        script.go.set()
        assert await working == "well"
    assert script.verbs_asked() == ["begin", "finish"]


async def test_an_end_is_tried_for_as_long_as_the_lease_lasts() -> None:
    script, events = Script(finish=[AWAY], heartbeat=[AWAY]), list[object]()
    async with guarding(script, events) as guard:
        before = time.monotonic()
        async with await held(guard, lease=4):
            pass
        assert 3.5 < time.monotonic() - before < 5
    assert isinstance(events[-1], EndUnwritten)
    assert script.verbs_asked().count("finish") > 4


# ---- the lease


async def test_a_run_past_its_lease_is_cancelled_and_ends_without_a_word() -> None:
    script, events = Script(heartbeat=[AWAY]), list[object]()
    async with guarding(script, events) as guard:
        hold = await held(guard, lease=1)
        async with hold:
            await asyncio.sleep(10)
            raise AssertionError("unreachable")
        assert hold.outcome is Word.STALE
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
    assert script.verbs_asked() == ["begin"]
    assert any(isinstance(event, LeaseLost) and event.is_cancelled for event in events)


async def test_a_run_that_must_not_be_repeated_goes_on_past_its_lease() -> None:
    script, events = Script(heartbeat=[AWAY]), list[object]()
    async with guarding(script, events) as guard:
        hold = await held(guard, lease=1, on_crash="skip")
        async with hold:
            await eventually(lambda: any(isinstance(event, LeaseLost) for event in events))
        assert hold.outcome is Word.YES
    assert [event.is_cancelled for event in events if isinstance(event, LeaseLost)] == [False]


@pytest.mark.parametrize("on_crash", ["skip", "complete"])
async def test_a_run_that_was_taken_over_is_cancelled(on_crash: str) -> None:
    script = Script(heartbeat=[[Verdict(Word.STALE)]])
    async with guarding(script) as guard:
        hold = await held(guard, lease=1, on_crash=on_crash)
        async with asyncio.timeout(3), hold:
            await asyncio.sleep(10)
        assert hold.outcome is Word.STALE
    assert script.verbs_asked() == ["begin"]


async def test_a_stop_of_the_worker_is_not_mistaken_for_our_own_cancellation() -> None:
    script, cleaning_up = Script(heartbeat=[AWAY]), asyncio.Event()

    async def work(guard: AsyncGuard) -> None:
        async with await held(guard, lease=1):
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                cleaning_up.set()
                await asyncio.sleep(10)

    async with guarding(script) as guard:
        working = asyncio.create_task(work(guard))
        await asyncio.wait_for(cleaning_up.wait(), 5)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working


async def test_work_that_ends_well_although_it_was_cancelled_is_done() -> None:
    script = Script(heartbeat=[AWAY])
    async with guarding(script) as guard:
        hold = await held(guard, lease=1)
        async with hold:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
        assert hold.outcome is Word.YES


async def test_code_that_blocks_the_loop_keeps_its_lease() -> None:
    script = Script()
    async with guarding(script) as guard:
        hold = await held(guard, lease=1)
        async with hold:
            time.sleep(1.5)  # noqa: ASYNC251 - that is the point
            await asyncio.sleep(0)
        assert hold.outcome is Word.YES
    assert sum(verb == "heartbeat" for verb, *_ in script.asked) >= 3


# ---- the current slot


async def test_a_job_knows_its_slot_and_nobody_else_does() -> None:
    async with guarding(Script()) as guard:
        with pytest.raises(NotInSlot):
            current_slot()
        async with await held(guard) as slot:
            assert current_slot() is slot
            assert await asyncio.to_thread(current_slot) is slot
            assert await asyncio.create_task(_now()) is slot
        with pytest.raises(NotInSlot):
            current_slot()
    assert (slot.key, slot.job, slot.attempt, slot.fence) == (slip().key, "digest", 1, 7)
    assert slot.fire_time == slot.interval.end == datetime.fromtimestamp(slip().fire / 1000, UTC)
    assert slot.interval.start == datetime.fromtimestamp(slip().start / 1000, UTC)


async def _now() -> object:
    return current_slot()


async def test_an_idempotency_key_depends_on_slot_and_parts_alone() -> None:
    async with guarding(Script()) as guard:
        async with await held(guard) as slot:
            pass
        async with await held(guard, lease=2) as later_attempt:
            pass
    assert slot.idempotency_key("mail", 7) == later_attempt.idempotency_key("mail", 7)
    assert len({slot.idempotency_key(*parts) for parts in [(), ("a", "b"), ("ab",), ("a,b",), ("", "ab")]}) == 5


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_is_described_within_one_kilobyte_whatever_it_is() -> None:
    assert describe(ValueError("no")) == "ValueError: no"
    assert describe(_Mute()) == "_Mute"
    assert 1020 < len(describe(ValueError("é" * 9000)).encode()) <= 1024
