"""A hundred thousand jobs, some of which misbehave."""

from __future__ import annotations

from datetime import datetime, timedelta
from time import process_time

import pytest

from slotqueue import ConfigurationError, Every, Policy, SlotQueue
from slotqueue.events import Event, JobTroubled
from slotqueue.slots import EPOCH
from tests.connections.enqueuers import Listing

MANY = 100_000
ODD = range(0, MANY, 1000)


class Moody:
    """A schedule that can be added and then fails."""

    def __init__(self) -> None:
        self.is_bad = False

    def between(self, start: datetime, end: datetime) -> list[datetime]:
        return [self.next_after(start)]

    def next_after(self, at: datetime) -> datetime:
        if self.is_bad:
            raise RuntimeError("not today")
        return at + timedelta(seconds=1)

    def latest_at(self, at: datetime) -> datetime | None:
        return self.next_after(at) - timedelta(seconds=1) if at > EPOCH else None


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_hundred_thousand_jobs_with_damaged_ones_among_them(redis_url: str) -> None:
    events: list[Event] = []
    listing, policy = Listing(), Policy(on_crash="complete")
    slots = SlotQueue(redis_url, enqueuer=listing, defaults=policy, on_event=events.append)
    moody = Moody()
    began = process_time()
    for i in range(MANY):
        slots.add(f"job-{i}", moody if i in ODD else Every(hours=24, offset=60))
        if i in ODD:
            with pytest.raises(ConfigurationError, match=f"bad-{i}"):
                slots.add(f"bad-{i}", Every(hours=1), on_crash="neither")
    slots.add("second", Every(seconds=1))
    moody.is_bad = True
    await slots.tick()
    while not any(message.slip.key.startswith("ran:second:") for message in listing.messages):
        await slots.tick()
    assert process_time() - began < 60
    began = process_time()
    counts = await slots.tick()
    assert counts["offered"] < 100, "the job of each second, however late this machine is"
    assert process_time() - began < 1, "a pass looks at what is due, not at all"
    assert {event.job for event in events if isinstance(event, JobTroubled)} <= {f"job-{i}" for i in ODD}
    await slots.stop()
