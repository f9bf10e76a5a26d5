"""Messages that meet: two workers with the same slot, a winner or a worker that comes back after it was given up."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from arq.connections import RedisSettings

from slotqueue.answers import Word
from slotqueue.enqueuers.arq import ArqEnqueuer
from tests.fleet.fixtures import NewFleet
from tests.fleet.hand import Hand
from tests.fleet.orders import Arrow
from tests.hours import hourly_orders
from tests.servers import Server
from tests.waiting import eventually

_COUNT = 20


@pytest.mark.parametrize("policy", ["complete", "skip"])
async def test_two_workers_that_begin_the_same_slots_at_once_run_them_once(
    policy: str, new_fleet: NewFleet, hand: Hand, own_server: Server
) -> None:
    """Two queues in two Redises hold the same message: arq's own lock cannot help, only the begin can."""
    fleet = new_fleet()
    settings = {"max_jobs": _COUNT}
    workers = fleet.worker("one", worker=settings), fleet.worker("other", worker=settings, broker_url=own_server.url)
    await fleet.are_ready(*workers)
    job = hand.job("rollup", timedelta(hours=1), task="slow", kwargs={"seconds": 0.3}, on_crash=policy, lease=4)
    messages = hand.claim(job, hand.latest(job, _COUNT))
    assert set(hand.confirm(messages)) == {Word.QUEUED}
    queues = [ArqEnqueuer(RedisSettings.from_dsn(url)) for url in (fleet.url, own_server.url)]
    for queue in queues:
        await queue.given_up([])
    for worker in workers:
        worker.freeze()
    await asyncio.gather(*(queue.enqueue(messages) for queue in queues))
    for worker in workers:
        worker.thaw()
    for queue in queues:
        await queue.close()

    keys = [message.slip.key for message in messages]
    for key in keys:
        await fleet.reaches(key, "done")
    await eventually(
        lambda: not fleet.redis.zcard("arq:queue") and own_server.ask("ZCARD arq:queue") == "0",
        why="both workers let their copies go",
    )
    assert [fleet.runs(key) for key in keys] == [1] * _COUNT
    assert {event["key"] for event in fleet.events("MessageDropped")} == set(keys), "each slot was delivered twice"


@pytest.mark.parametrize("keep_result", [0, 3600])
@pytest.mark.parametrize("arrow", [Arrow.CLAIMED, Arrow.ENQUEUED])
async def test_a_winner_that_comes_back_after_a_take_over_changes_nothing(
    arrow: Arrow, keep_result: int, new_fleet: NewFleet
) -> None:
    """Frozen between claim and confirm, longer than its grace: the slot is done by the time it goes on."""
    fleet = new_fleet(jobs=[{"name": "mail", "every": 2}], grace_ms=800, sweep_every=0.2)
    await fleet.are_ready(fleet.worker(worker={"keep_result": keep_result}), fleet.replica("standby", late=0.3))
    stale = fleet.replica("stale", arrow=arrow, doomed="mail", fate="SIGSTOP")
    key = await fleet.struck("mail")
    before = await fleet.reaches(key, "done")
    stale.thaw()
    await eventually(
        lambda: fleet.events("ConfirmStale", "EnqueueRefused", key=key),
        why="the stale winner has gone on",
    )
    await eventually(lambda: fleet.redis.zscore("arq:queue", key) is None, why="no copy is left")
    following = (await fleet.has_slots("mail", fleet.states("mail").count("done") + 1))[-1]

    assert fleet.runs(key) == 1
    assert fleet.record(key) == before, "not a word of it changed"
    assert before["n"] == "1" or arrow is Arrow.ENQUEUED, "that one may have run before its grace was over"
    assert stale.is_alive
    assert fleet.runs(following) <= 1


@pytest.mark.parametrize("policy", ["complete", "skip"])
async def test_a_worker_that_comes_back_after_its_lease_changes_nothing(policy: str, new_fleet: NewFleet) -> None:
    """Frozen in the function for longer than the lease: completed by another, or lost; its own end comes too late.

    Of a lost slot it may still say that the work is done, if it can before a heartbeat tells it to stop: nobody else
    has begun it.
    """
    job = {"name": "mail", **hourly_orders(), "task": "slow", "kwargs": {"seconds": 60}, "on_crash": policy}
    fleet = new_fleet(jobs=[], sweep_every=0.2)
    await fleet.are_ready(stale := fleet.worker("stale"), fleet.replica("replica", jobs=[job]))
    hand = Hand(fleet.url)
    one = hand.job("mail", timedelta(hours=1), task="slow", on_crash=policy, lease=1)
    messages = hand.claim(one, hand.latest(one))
    hand.close()
    key = messages[0].slip.key
    fleet.let_deadline_pass(key)
    await eventually(lambda: fleet.runs(key) == 1)
    stale.freeze()
    fleet.let_go()
    other = fleet.worker("other")
    await fleet.reaches(key, "done" if policy == "complete" else "lost")
    stale.thaw()
    if policy == "complete":
        await eventually(lambda: stale.events("LeaseLost", "RunStale", key=key), why="it has heard that it is stale")
        assert fleet.runs(key) == 2
        (done,) = await eventually(lambda: other.events("RunDone", key=key))
        assert fleet.record(key)["worker"] == done["worker"]
        assert not stale.events("RunDone", key=key)
    else:
        ends = partial(stale.events, "RunDone", key=key)
        # That its lease has passed it may say before; until it is stopped it goes on.
        await eventually(
            lambda: ends() or [each for each in stale.events("LeaseLost", key=key) if each["is_cancelled"]],
            why="it has come to its end, or was stopped",
        )
        is_done = fleet.state(key) == "done"
        assert is_done == bool(ends())
        assert is_done == any(text.startswith("finished by") for text in fleet.past(key))
        assert is_done == (fleet.redis.zscore("ran:dead", key) is None)
        assert fleet.runs(key) == 1
