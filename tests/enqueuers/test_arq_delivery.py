"""Deliveries at the edge of time, with a store that answers as a test tells it to and arq's Redis as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.worker import Retry

from slotqueue.answers import Dropped, Verdict, Word
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.enqueuers.arq.delivery import deliver
from slotqueue.enqueuers.arq.guarded import Guarded, Limits
from slotqueue.guard import AsyncGuard
from slotqueue.guard_events import MessageForeign, MessageHandedBack
from slotqueue.messages import Message
from tests.servers import Server
from tests.unit.guard_stage import AWAY, Script, async_guard, slip

SLIP = slip(lease=60)  # longer than any pause of the machine
KEY = SLIP.key
pytestmark = pytest.mark.processes


class Desk:
    """A worker's connection, and one message in arq's hands as its first try."""

    def __init__(self, redis: ArqRedis, script: Script) -> None:
        self.redis = redis
        self.events: list[object] = []
        self.guard: AsyncGuard = async_guard(script, self.events.append)
        self.is_stopping: bool | None = False
        self.runs = 0

    async def run(self, ctx: Any) -> str:
        self.runs += 1
        return "well"

    async def deliver(self, limits: Limits = Limits(20, 5, is_retrying=True), **about: Any) -> object:  # noqa: B008
        guarded = Guarded(about.get("function", self.run), "arq:queue", None, limits, {"ran": self})
        return await deliver(guarded, {"job_id": KEY, "job_try": 1, "redis": self.redis}, (), {})

    async def now_ms(self) -> int:
        """Redis's time, whole ms."""
        seconds, micros = await self.redis.time()
        return int(seconds * 1000 + micros // 1000)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def desk(redis_url: str, script: Script) -> AsyncIterator[Desk]:
    pool = await create_pool(RedisSettings.from_dsn(redis_url))
    await ArqEnqueuer(pool).enqueue([Message(SLIP, "run", (), {}, None)])
    await pool.incr(f"arq:retry:{KEY}")
    desk = Desk(pool, script)
    yield desk
    script.go.set()
    await desk.guard.stop()
    await pool.aclose(close_connection_pool=True)


async def test_a_granted_slot_runs(desk: Desk, script: Script) -> None:
    assert await desk.deliver() == "well"
    assert script.verbs_asked() == ["begin", "finish"]
    assert await desk.redis.get(f"arq:retry:{KEY}") == b"1"


@pytest.mark.parametrize("why", [Word.DONE, Word.OVER, Word.SKIPPED, Word.EXPIRED, Word.LOST])
async def test_the_message_of_a_slot_that_is_over_is_let_go(desk: Desk, script: Script, why: Word) -> None:
    script.answers["begin"] = [Dropped(why)]
    assert await desk.deliver() is None
    assert desk.runs == 0


@pytest.mark.parametrize(
    "answer, wait_ms",
    [(AWAY, 10_000), (Dropped(Word.BUSY), 30_000), (Dropped(Word.BROKEN, "what"), 10_000)],
    ids=["away", "busy", "broken"],
)
async def test_a_message_that_cannot_run_now_waits_and_spends_no_try(
    desk: Desk, script: Script, answer: Any, wait_ms: int
) -> None:
    script.answers["begin"] = [answer]
    before = await desk.now_ms()
    with pytest.raises(Retry) as caught:
        await desk.deliver(Limits(1, 1, is_retrying=True))
    put_off_to = await desk.redis.zscore("arq:queue", KEY)
    assert caught.value.defer_score is None  # else arq would make an entry of an id that may be gone by then
    assert put_off_to is not None
    assert before + wait_ms <= put_off_to <= await desk.now_ms() + wait_ms
    assert not await desk.redis.exists(f"arq:retry:{KEY}")
    assert isinstance(desk.events[-1], MessageHandedBack)
    assert desk.runs == 0


async def test_handing_back_makes_no_entry_for_a_message_that_is_gone(desk: Desk, script: Script) -> None:
    script.answers["begin"] = [Dropped(Word.BUSY)]
    await desk.redis.delete("arq:queue", f"arq:retry:{KEY}")
    with pytest.raises(Retry):
        await desk.deliver()
    assert not await desk.redis.exists("arq:queue", f"arq:retry:{KEY}")


async def test_of_several_tries_one_is_taken_back(desk: Desk, script: Script) -> None:
    script.answers["begin"] = [Dropped(Word.BUSY)]
    await desk.redis.set(f"arq:retry:{KEY}", 3, ex=1000)
    with pytest.raises(Retry):
        await desk.deliver()
    assert await desk.redis.get(f"arq:retry:{KEY}") == b"2"
    assert await desk.redis.ttl(f"arq:retry:{KEY}") > 900


async def test_begin_that_takes_all_the_time_hands_the_message_back(desk: Desk, script: Script) -> None:
    script.waiting.add("begin")
    delivering = asyncio.create_task(desk.deliver(Limits(1, 1, is_retrying=True)))
    await asyncio.sleep(1.1)
    script.go.set()
    with pytest.raises(Retry):
        await delivering
    assert script.verbs_asked() == ["begin", "postpone"]
    assert desk.runs == 0


async def test_arqs_time_out_during_begin_is_no_failure_of_the_job(desk: Desk, script: Script) -> None:
    script.waiting.add("begin")
    delivering = asyncio.create_task(desk.deliver(Limits(1, 1, is_retrying=True)))
    arqs_view = asyncio.create_task(asyncio.wait_for(delivering, 1))
    await asyncio.sleep(1.2)
    script.go.set()
    with pytest.raises(Retry):  # so that arq keeps the message
        await arqs_view
    assert script.verbs_asked() == ["begin", "postpone"]
    assert desk.runs == 0


async def test_a_stop_during_begin_hands_the_message_back(desk: Desk, script: Script) -> None:
    script.waiting.add("begin")
    delivering = asyncio.create_task(desk.deliver(Limits(20, 1, is_retrying=True)))
    await script.has_arrived()
    desk.is_stopping = True
    delivering.cancel()
    script.go.set()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert script.verbs_asked() == ["begin", "postpone"]
    assert not await desk.redis.exists(f"arq:retry:{KEY}")


@pytest.mark.parametrize("fails", [True, False], ids=["failing", "succeeding"])
async def test_a_run_that_was_taken_over_does_not_clear_its_successors_message_away(
    desk: Desk, script: Script, fails: bool
) -> None:
    script.answers |= {"finish": [Verdict(Word.STALE)], "fail": [Verdict(Word.STALE)]}

    async def run(ctx: Any) -> None:
        if fails:
            raise ValueError("no")

    with pytest.raises(Retry):
        await desk.deliver(function=run)


async def test_an_error_goes_on_to_arq_as_it_is(desk: Desk) -> None:
    async def run(ctx: Any) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await desk.deliver(function=run)


async def test_where_nobody_can_tell_a_stop_a_cancellation_is_a_hand_back(desk: Desk, script: Script) -> None:
    desk.is_stopping = None
    runs = asyncio.Event()

    async def run(ctx: Any) -> None:
        runs.set()
        await asyncio.sleep(10)

    delivering = asyncio.create_task(desk.deliver(function=run))
    await runs.wait()
    delivering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert script.verbs_asked() == ["begin", "postpone"]


@pytest.mark.parametrize("is_stopping", [False, None])
async def test_a_run_ends_a_little_before_arq_would_end_it(
    desk: Desk, script: Script, is_stopping: bool | None
) -> None:
    desk.is_stopping = is_stopping

    async def run(ctx: Any) -> None:
        await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(desk.deliver(Limits(1, 5, is_retrying=True), function=run), 5)
    assert script.asked[-1] == ("fail", "TimeoutError: still running after 0.95 s")


async def test_a_time_out_within_a_job_is_an_error_as_any_other(desk: Desk, script: Script) -> None:
    async def run(ctx: Any) -> None:
        raise TimeoutError("no answer from the bank")

    with pytest.raises(TimeoutError):
        await desk.deliver(function=run)
    assert script.asked[-1] == ("fail", "TimeoutError: no answer from the bank")


async def test_a_message_whose_payload_is_gone_is_not_run(desk: Desk, script: Script) -> None:
    await desk.redis.delete(f"arq:job:{KEY}")
    with pytest.raises(Retry):
        await desk.deliver()
    assert desk.runs == 0
    assert script.asked == []


async def test_a_message_of_another_namespace_is_handed_back_loudly(desk: Desk) -> None:
    stranger = replace(SLIP, key="other:digest:2026-11-30T09:00")
    await ArqEnqueuer(desk.redis).enqueue([Message(stranger, "run", (), {}, None)])
    guarded = Guarded(desk.run, "arq:queue", None, Limits(20, 5, is_retrying=True), {"ran": desk})
    with pytest.raises(Retry):
        await deliver(guarded, {"job_id": stranger.key, "job_try": 1, "redis": desk.redis}, (), {})
    assert isinstance(desk.events[-1], MessageForeign)
    assert "'other'" in desk.events[-1].why
    assert desk.runs == 0


@pytest.mark.slow
async def test_while_arqs_own_redis_is_away_the_message_waits(own_server: Server, script: Script) -> None:
    pool = await create_pool(RedisSettings.from_dsn(own_server.url))
    desk = Desk(pool, script)
    own_server.stop()
    with pytest.raises(Retry) as caught:
        await desk.deliver()
    assert caught.value.defer_score == 10_000
    await pool.aclose(close_connection_pool=True)
