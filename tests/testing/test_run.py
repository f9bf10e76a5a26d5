from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from arq import Retry, func

from slotqueue import Cron, Policy, SlotQueue, current_slot
from slotqueue.current import CurrentSlot
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.errors import ConfigurationError
from slotqueue.slots import SlotState
from slotqueue.testing import run

AT = datetime(2031, 3, 30, 1, 0, tzinfo=UTC)


class Calls:
    """What functions of an application saw."""

    def __init__(self) -> None:
        self.slots: list[CurrentSlot] = []
        self.ctx: dict[str, Any] = {}
        self.kwargs: dict[str, Any] = {}
        self.error: BaseException | None = None

    def note(self, ctx: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self.slots.append(current_slot())
        self.ctx, self.kwargs = dict(ctx or {}), kwargs
        if self.error is not None:
            raise self.error


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def slots(calls: Calls) -> SlotQueue:
    slots = SlotQueue("redis://nowhere:1/0", enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
    slots.add("nightly", Cron("30 2 * * *", tz="Europe/Berlin"), task="rollup", kwargs={"kind": "all"}, expires=60)

    async def rollup(ctx: dict[str, Any], **kwargs: Any) -> None:
        await asyncio.sleep(0)
        calls.note(ctx, **kwargs)

    @slots.worker
    class WorkerSettings:
        functions: ClassVar[list[Any]] = [func(rollup, name="rollup")]

    return slots


async def test_one_slot_goes_from_its_claim_to_its_done_marker_in_this_process(slots: SlotQueue, calls: Calls) -> None:
    found = await run(slots, "nightly", at=AT, ctx={"db": "a pool"})
    assert found.state is SlotState.DONE, found.says
    assert (found.enqueues, found.attempts, found.fire_time) == (1, 0, AT)
    assert found.task == "arq:rollup"
    (slot,) = calls.slots
    assert slot.interval == (datetime(2031, 3, 29, 1, 30, tzinfo=UTC), AT), "across the change to summer time"
    assert calls.kwargs == {"kind": "all"}
    assert calls.ctx["db"] == "a pool"
    assert calls.ctx["job_id"] == found.key == "ran:nightly:2031-03-30T01:00"


async def test_the_time_is_that_of_the_slot_whenever_the_test_runs(slots: SlotQueue) -> None:
    """In the future a claim would be early, in the past this slot has expired."""
    for at in (AT, datetime(2021, 3, 27, 1, 30, tzinfo=UTC)):
        found = await run(slots, "nightly", at=at)
        assert found.state is SlotState.DONE
        assert found.late is not None
        assert found.late < 5
    assert (await run(slots, "nightly")).state is SlotState.DONE, "the newest one"


async def test_an_error_of_the_function_is_in_the_record_and_in_the_log(
    slots: SlotQueue, calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "slotqueue.testing")
    calls.error = ValueError("no data")
    found = await run(slots, "nightly", at=AT)
    assert found.state is SlotState.DEAD
    assert found.error == "ValueError: no data"
    assert "ValueError: no data" in caplog.text, "with its traceback"


async def test_what_arq_would_run_again_is_postponed(slots: SlotQueue, calls: Calls) -> None:
    calls.error = Retry(defer=5)
    found = await run(slots, "nightly", at=AT)
    assert found.state is SlotState.POSTPONED


async def test_in_a_redis_that_is_given_a_slot_that_is_done_runs_no_second_time(
    slots: SlotQueue, calls: Calls, slotqueue_redis: str
) -> None:
    for _ in range(2):
        found = await run(slots, "nightly", at=AT, redis=slotqueue_redis)
        assert found.state is SlotState.DONE
    assert len(calls.slots) == 1
    await run(slots, "nightly", at=AT)
    assert len(calls.slots) == 2, "without one, each run has a Redis of its own"


@pytest.mark.parametrize("is_async", [True, False])
async def test_any_function_can_take_its_place(slots: SlotQueue, calls: Calls, is_async: bool) -> None:
    def plain(ctx: dict[str, Any], kind: str) -> None:
        calls.note(ctx, kind=kind)

    async def coroutine(ctx: dict[str, Any], kind: str) -> None:
        calls.note(ctx, kind=kind)

    function: Callable[..., object] = coroutine if is_async else plain
    assert (await run(slots, "nightly", at=AT, function=function)).state is SlotState.DONE
    assert calls.kwargs == {"kind": "all"}


async def test_wrong_questions_are_answered_with_what_would_be_right(slots: SlotQueue) -> None:
    with pytest.raises(ConfigurationError, match="it fires at 2031-03-30T01:00:00Z and 2031-03-31T00:30:00Z"):
        await run(slots, "nightly", at=AT + timedelta(minutes=1))
    slots.add("other", Cron("0 * * * *"))
    with pytest.raises(ConfigurationError, match=r"no class with @slots.worker has the function 'other' of arq"):
        await run(slots, "other")


async def test_slots_run_side_by_side(slots: SlotQueue, calls: Calls) -> None:
    days = [AT + timedelta(days=day, minutes=-30) for day in range(1, 5)]
    found = await asyncio.gather(*(run(slots, "nightly", at=day) for day in days))
    assert {each.state for each in found} == {SlotState.DONE}
    assert len(calls.slots) == 4


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_of_the_process_runs_as_it_is(calls: Calls, is_async: bool) -> None:
    slots = SlotQueue("redis://nowhere.invalid:1/0", defaults=Policy(on_crash="skip"))

    async def coroutine(kind: str) -> None:
        await asyncio.sleep(0)
        calls.note(kind=kind)

    def plain(kind: str) -> None:
        calls.note(kind=kind)

    slots.job(Cron("0 * * * *"), name="hourly", kwargs={"kind": "all"})(coroutine if is_async else plain)
    found = await run(slots, "hourly", at=AT)
    assert (found.state, found.task) == (SlotState.DONE, "inprocess:hourly")
    assert calls.kwargs == {"kind": "all"}
    calls.error = ValueError("no data")
    found = await run(slots, "hourly", at=AT)
    assert (found.state, found.error) == (SlotState.DEAD, "ValueError: no data")
