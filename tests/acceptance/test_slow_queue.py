"""A queue that is too slow for many messages at once still gets all of them: the sweep asks for less at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from slotqueue import Job, SlotQueue, sweeper
from slotqueue.answers import Offer
from slotqueue.messages import Accepted, Delivery, Message, Refused, Waiting
from slotqueue.slots import parse_key
from tests.hours import hourly
from tests.store.stage import HOUR, Stage

MANY = 40


class SlowQueue:
    """Takes ten messages at a time; of more it takes none in time."""

    kind = "arq"

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.taken: list[str] = []

    def check(self, job: Job) -> None:
        pass

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.sizes.append(len(messages))
        await asyncio.sleep(0.005 * len(messages))
        if len(messages) > 10:
            return [Refused("did not answer in time", is_sent_possible=True)] * len(messages)
        self.taken += (message.slip.key for message in messages)
        return [Accepted()] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        pass


async def test_what_a_queue_refuses_together_it_is_given_in_pieces(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "_PIECE_SECONDS", 0.04)
    monkeypatch.setattr(sweeper, "_BATCH", MANY)
    stage, queue = Stage(redis_url), SlowQueue()
    slots = SlotQueue(redis_url, enqueuer=queue)
    slots.add("rollup", hourly(), task="do_rollup", on_crash="complete")
    job = stage.job(period=timedelta(hours=1))
    offers = [Offer(job, stage.slot(job)) for _ in range(MANY)]
    assert {verdict.word for verdict in stage.claim(*offers)} == {"won"}
    await slots.tick()
    for _ in range(20):  # on a slow machine they are smaller pieces still
        if len(queue.taken) < MANY:
            stage.age(HOUR)
            await slots.sweep()
    await slots.stop()
    stage.close()
    assert sorted(queue.taken) == sorted(offer.slot.key for offer in offers)
    assert queue.sizes[:2] == [MANY, MANY // 2]
    assert {parse_key(key).job for key in queue.taken} == {"rollup"}
