"""Slots are claimed ahead of their time and enqueued at it; of a burst each replica claims its share first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from math import inf
from time import monotonic

import pytest

from slotqueue import Every
from slotqueue.answers import Share
from slotqueue.events import SlotClaimed, SlotTaken
from slotqueue.messages import Delivery, Message
from slotqueue.slots import parse_key, to_ms
from tests.connections.enqueuers import Listing
from tests.fleet.fixtures import Apps, NewFleet
from tests.waiting import eventually

BURST = 300


class Early(Listing):
    """Wants messages ahead of their time, and notes when it was given each."""

    def __init__(self, ahead_seconds: float) -> None:
        super().__init__()
        self.ahead_seconds = ahead_seconds
        self.heard: list[float] = []

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.heard += [monotonic()] * len(messages)
        return await super().enqueue(messages)


async def test_a_slot_is_claimed_before_its_time_and_enqueued_no_earlier(apps: Apps, new_fleet: NewFleet) -> None:
    fleet, queue = new_fleet(), Listing()
    app = apps.new(enqueuer=queue)
    jobs = [app.add(f"job-{number}", Every(seconds=1), jitter=jitter) for number, jitter in enumerate((0, 0, 0.5))]
    async with app:
        await eventually(lambda: len(queue.messages) > 12)
    delays = {job.name: job.delay_of for job in jobs}
    for event in apps.told(SlotClaimed):
        assert event.late_ms >= delays[event.job](to_ms(parse_key(event.key).fire_time)) - 1500
    assert sum(event.late_ms < 0 for event in apps.told(SlotClaimed)) > 4
    for message in queue.messages:
        delay = delays[parse_key(message.slip.key).job](message.slip.fire)
        assert int(fleet.record(message.slip.key)["queued"]) >= message.slip.fire + delay


@pytest.mark.parametrize("seconds", [0.01, inf])
async def test_a_queue_that_takes_messages_ahead_is_told_their_time(apps: Apps, seconds: float) -> None:
    queue = Early(seconds)
    app = apps.new(enqueuer=queue)
    jobs = {job.name: job for job in (app.add("job", Every(seconds=1)), app.add("late", Every(seconds=1), jitter=0.5))}
    app.add("in-time", Every(seconds=1), overlap="forbid")
    async with app:
        await eventually(lambda: len(queue.messages) > 12)
    ahead = 0
    for message, heard in zip(queue.messages, queue.heard, strict=True):
        job = jobs.get(parse_key(message.slip.key).job)
        if message.not_before is None:
            continue
        assert job, "where slots must not overlap none is claimed ahead"
        assert message.not_before.ms == message.slip.fire + job.delay_of(message.slip.fire)
        assert message.not_before.monotonic - heard <= min(seconds, 0.02)
        ahead += heard < message.not_before.monotonic
    assert ahead > 4


async def test_a_stop_sends_what_was_claimed_ahead_before_it_ends(apps: Apps, new_fleet: NewFleet) -> None:
    fleet, queue = new_fleet(), Listing()
    app = apps.new(enqueuer=queue)
    for number in range(BURST):  # claimed 55 ms ahead
        app.add(f"job-{number}", Every(seconds=2), on_crash="skip")
    async with app:
        await eventually(lambda: len(apps.told(SlotClaimed)) == BURST, pause=0.001)
    assert len(queue.messages) == BURST
    assert not fleet.redis.zcard("ran:open"), "sent and confirmed, all of them"


async def test_each_replica_claims_its_share_of_a_burst_and_later_that_of_one_that_is_gone(
    apps: Apps, new_fleet: NewFleet
) -> None:
    """Of three replicas the third has just died: its slots wait for a moment, and are lost to nobody."""
    fleet, queue, size = new_fleet(), Listing(), 3 * BURST
    two = [apps.new(enqueuer=queue, replica=name) for name in ("a", "b")]
    offset = timedelta(seconds=(int(fleet.now()) + 4) % 3600)
    for rank, app in enumerate(two):
        for number in range(size):
            app.add(f"job-{number}", Every(hours=1, offset=offset))
        await app.tick()
        replica = app._life._replica
        assert replica is not None
        replica.ticker.planner.share = Share(rank, 3)
    async with two[0], two[1]:
        await eventually(lambda: len(queue.messages) >= size)
        await eventually(lambda: len(apps.told(SlotTaken)) >= size, why="each has looked at the other's")
    keys = [message.slip.key for message in queue.messages]
    assert len(keys) == len(set(keys)) == size
    firsts, late = Counter[int](), 0
    for event in apps.told(SlotClaimed):
        fire = to_ms(parse_key(event.key).fire_time)
        owner = next(rank for rank in range(3) if Share(rank, 3).holds(event.job, fire))
        if event.late_ms < 500:
            assert event.replica.startswith("ab"[owner])
            firsts[owner] += 1
        else:
            assert owner == 2
            late += 1
    assert min(firsts[0], firsts[1], late) > 200
