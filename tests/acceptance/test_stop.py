"""Stopping: the enqueue in hand is finished, and whatever Redis does, the process leaves within five seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from slotqueue import Every
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.events import ReplicaStarted, SlotClaimed, SlotEnqueued, StoreLost
from slotqueue.messages import Delivery, Message
from tests.fleet.fixtures import Apps, NewFleet
from tests.proxy import Proxy
from tests.servers import Server
from tests.stopwatch import Stopwatch
from tests.waiting import eventually

pytestmark = pytest.mark.processes
_SECONDS = 5.0


async def test_sigterm_finishes_the_enqueue_in_hand(new_fleet: NewFleet) -> None:
    fleet = new_fleet(jobs=[{"name": "mail", "every": 1}], holds_enqueue=True)
    replica = fleet.replica("replica")
    await replica.told("SlotClaimed")
    assert set(fleet.states("mail")) == {"claimed"}
    replica.terminate()
    with Stopwatch(replica.pid) as watch:
        await eventually(lambda: watch.seconds > 0.5, why="it has heard of the stop, and goes on enqueueing")
        assert replica.is_alive
        fleet.let_go()
        assert await replica.ended() == 0
    assert watch.seconds < _SECONDS
    assert set(fleet.states("mail")) == {"sent"}
    assert fleet.redis.zrange("arq:queue", 0, -1) == fleet.keys("mail")
    assert not fleet.redis.hlen("ran:replicas"), "it has left the registry"
    assert replica.events("ReplicaStopped")


@pytest.mark.parametrize("how", ["refused", "swallowed", "never there"])
async def test_a_stop_takes_five_seconds_at_most_while_redis_is_unreachable(
    how: str, server: Server, apps: Apps, new_fleet: NewFleet
) -> None:
    new_fleet()
    with Proxy(server.port) as proxy:
        if how == "never there":
            proxy.refuse()
        app = apps.new(proxy.url)
        app.add("mail", Every(seconds=1))
        await app.start()
        if how != "never there":
            await eventually(lambda: apps.told(SlotEnqueued))
            proxy.refuse() if how == "refused" else proxy.swallow()
        await eventually(lambda: apps.told(StoreLost))
        assert not app.is_ready or how != "never there"
        with Stopwatch() as watch:
            await app.stop()
        assert watch.seconds < _SECONDS


async def test_a_stop_in_the_middle_of_a_call_that_is_never_answered(own_server: Server, new_fleet: NewFleet) -> None:
    fleet = new_fleet(own_server.url, jobs=[{"name": "mail", "every": 1}])
    await fleet.are_ready(replica := fleet.replica("replica"))
    own_server.pause()
    with Stopwatch() as watch:
        await eventually(lambda: watch.seconds > 1.2)
    replica.terminate()
    with Stopwatch(replica.pid) as watch:
        code = await replica.ended()
    own_server.resume()
    assert watch.seconds < _SECONDS
    assert code == 0


async def test_redis_may_be_down_at_the_start(own_server: Server, apps: Apps, new_fleet: NewFleet) -> None:
    """The host application starts, the ticker keeps trying, readiness says no."""
    fleet = new_fleet(own_server.url)
    own_server.stop()
    app = apps.new(own_server.url)
    app.add("mail", Every(seconds=1))
    async with app:
        await eventually(lambda: apps.told(StoreLost))
        assert not app.is_ready
        own_server.start()
        await eventually(lambda: apps.told(ReplicaStarted))
        await fleet.has_slots("mail", 1, state="sent")
        assert app.is_ready


class Hanging(ArqEnqueuer):
    """Never answers."""

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        await asyncio.sleep(3600)
        return []


async def test_an_enqueue_that_hangs_is_not_waited_for_longer(apps: Apps, new_fleet: NewFleet) -> None:
    """Its slot stays claimed, and another replica's sweep sends it."""
    fleet = new_fleet()
    app = apps.new(enqueuer=Hanging())
    app.add("mail", Every(seconds=1))
    await app.start()
    await eventually(lambda: apps.told(SlotClaimed))
    with Stopwatch() as watch:
        await app.stop()
    assert watch.seconds < _SECONDS
    assert set(fleet.states("mail")) == {"claimed"}
    assert fleet.redis.zcard("ran:open") == len(fleet.keys("mail"))
