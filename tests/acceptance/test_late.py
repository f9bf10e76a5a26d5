"""Messages that wait too long, and workers that come back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.messages import Message
from tests.fleet.fixtures import NewFleet
from tests.fleet.fleet import Fleet
from tests.fleet.hand import Hand
from tests.waiting import eventually

pytestmark = pytest.mark.alone


async def _enqueue(fleet: Fleet, hand: Hand, message: Message) -> str:
    queue = ArqEnqueuer()
    queue.use_default(fleet.url)
    await queue.enqueue([message])
    await queue.close()
    hand.confirm([message])
    return message.slip.key


async def test_a_message_past_its_time_is_recorded_as_expired_and_one_without_runs_once(
    new_fleet: NewFleet, hand: Hand
) -> None:
    """Case 47, tastyware/streaq#152: workers were down, and a stale run fired far outside of its window.

    agronholm/apscheduler#182, #292: nor may a default drop a slot that is two seconds late.
    """
    fleet = new_fleet(jobs=[])
    fleet.redis.zadd("ran:tasks", {"arq:quick": 10**14})
    await fleet.next_second()
    strict = hand.job("strict", timedelta(seconds=1), expires=3)
    plain = hand.job("plain", timedelta(seconds=1))
    keys = {}
    for job in (strict, plain):
        (message,) = hand.claim(job, hand.latest(job))
        keys[job.name] = await _enqueue(fleet, hand, message)
    assert {fleet.state(key) for key in keys.values()} == {"queued"}
    await fleet.passes(fleet.now() + 3)
    await fleet.are_ready(fleet.worker())

    record = await fleet.reaches(keys["strict"], "skipped")
    assert "expired" in record["why"]
    await fleet.reaches(keys["plain"], "done")
    assert fleet.redis.zscore("ran:open", keys["strict"]) is None, "nothing is left to sweep"
    await eventually(lambda: not fleet.redis.zcard("arq:queue"))
    assert [fleet.runs(keys[name]) for name in ("strict", "plain")] == [0, 1]
