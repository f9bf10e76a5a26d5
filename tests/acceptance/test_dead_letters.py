"""`SlotQueue(dead_letter="task")`: a job for each slot that was given up, once, whichever replica tells."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from slotqueue import ConfigurationError, Every, Job, SlotQueue
from slotqueue.messages import Accepted, Delivery, Message, Refused, Waiting
from slotqueue.protocols import Process
from slotqueue.slots import SlotState
from tests.store.stage import DAY, HOUR, Stage


class Queue:
    """A queue whose messages a test can see."""

    kind = "arq"

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.answer: Delivery = Accepted()

    def check(self, job: Job) -> None:
        pass

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.messages += messages
        return [self.answer] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        pass


@pytest.fixture
def stage(redis_url: str) -> Stage:
    return Stage(redis_url)


def application(url: str, queue: Queue) -> SlotQueue:
    slots = SlotQueue(url, enqueuer=queue, dead_letter="page", sweep_every=0.1)
    slots.add("other", Every(hours=1), on_crash="skip")
    return slots


async def test_each_dead_letter_is_told_once_by_one_of_many_replicas(redis_url: str, stage: Stage) -> None:
    queue = Queue()
    replicas = [application(redis_url, queue) for _ in range(3)]
    for each in replicas:
        await each.sweep()
    stage.run(stage.verbs.enlist(Process("w1", tasks=("arq:page",))))
    dead, _ = stage.in_state(SlotState.DEAD)
    lost, _ = stage.in_state(SlotState.LOST)
    for _ in range(2):
        await asyncio.gather(*(each.sweep() for each in replicas))
    told = {str(message.kwargs["slot"]): message for message in queue.messages}
    assert len(queue.messages) == 2
    assert told.keys() == {dead.key, lost.key}
    message = told[dead.key]
    assert message.task == "page"
    assert message.slip.key.startswith(f"ran:dead-letter:{dead.key.removeprefix('ran:')}~d")
    assert message.kwargs["job"] == "rollup"
    assert message.kwargs["state"] == "dead"
    assert message.kwargs["reason"]
    assert stage.state(message.slip.key) == "queued"
    for each in replicas:
        await each.close()


async def test_a_letter_whose_replica_died_is_told_by_another_one_with_all_it_said(
    redis_url: str, stage: Stage
) -> None:
    first, second = Queue(), Queue()
    first.answer = Refused("the queue is full")
    one, two = application(redis_url, first), application(redis_url, second)
    await one.sweep()
    await two.sweep()
    stage.run(stage.verbs.enlist(Process("w1", tasks=("arq:page",))))
    dead, _ = stage.in_state(SlotState.DEAD)
    await one.sweep()
    (refused,) = first.messages
    stage.pass_deadline(refused.slip.key)
    await two.sweep()
    (again,) = second.messages
    assert (again.slip.key, again.slip.n, again.kwargs) == (refused.slip.key, 1, refused.kwargs)
    assert again.kwargs["slot"] == dead.key
    await one.close()
    await two.close()


async def test_old_letters_and_letters_about_letters_are_not_told(redis_url: str, stage: Stage) -> None:
    stage.in_state(SlotState.DEAD)
    stage.pass_instant(stage.now())
    queue = Queue()
    slots = application(redis_url, queue)
    await slots.sweep()
    assert queue.messages == []  # it died before anybody was to be told
    stage.redis.set("ran:letters", stage.now() - 9 * DAY)
    stage.redis.zadd("ran:dead", {"ran:rollup:2026-10-02T03:00": stage.now() - DAY - HOUR})
    stage.redis.zadd("ran:dead", {"ran:dead-letter:rollup:2026-10-02T03:00~d7": stage.now()})
    stage.redis.zadd("ran:dead", {"stray": stage.now()})
    await slots.sweep()
    assert len(queue.messages) == 1  # the first one: it is young, and wanted now
    await slots.close()


async def test_a_letter_that_died_again_is_told_again(redis_url: str, stage: Stage) -> None:
    queue = Queue()
    slots = application(redis_url, queue)
    await slots.sweep()
    dead, _ = stage.in_state(SlotState.DEAD)
    await slots.sweep()
    await slots.sweep()
    assert len(queue.messages) == 1
    stage.pass_instant(stage.now())
    stage.redis.zadd("ran:dead", {dead.key: stage.now()})
    await slots.sweep()
    assert len(queue.messages) == 2
    assert len({message.slip.key for message in queue.messages}) == 2
    await slots.close()


def test_without_an_enqueuer_nobody_can_be_told() -> None:
    with pytest.raises(ConfigurationError, match="dead_letter"):
        SlotQueue("redis://localhost", dead_letter="page")
