"""What beats and ticking workers send: what Celery's own beat does, under the slot's key."""

from __future__ import annotations

import hashlib
import signal

import pytest

from slotqueue.store.scripts import source_of
from tests.beat.process import WORKER, Fleet, eventually, fire_time
from tests.proxy import Proxy
from tests.rabbitmq import RabbitMQ, taken
from tests.servers import Server

pytestmark = [pytest.mark.processes, pytest.mark.timeout(150)]


def test_the_message_is_the_one_that_beat_would_send(fleet: Fleet) -> None:
    entry = {
        "task": "work",
        "schedule": 1,
        "args": [1, "two"],
        "kwargs": {"three": 3},
        "options": {"queue": "slow", "headers": {"tenant": "a"}, "priority": 0, "slotqueue": {"lookback": 0}},
    }
    fleet.beats(1, entries={"tidy": entry})
    eventually(lambda: fleet.messages("slow"), what="a message")
    message = fleet.messages("slow")[0]
    headers = message["headers"]
    assert headers["task"] == "work"
    assert headers["id"].startswith("ran:tidy:")
    assert headers["celery_beat_task"] is True
    assert headers["tenant"] == "a"
    assert headers["argsrepr"] == "(1, 'two')"
    assert headers["kwargsrepr"] == "{'three': 3}"


def test_lazy_arguments_are_evaluated_by_the_winner_only(fleet: Fleet) -> None:
    fleet.beats(3, lazy=True)
    eventually(lambda: len(fleet.sent()) >= 4, what="the first messages")
    for beat in fleet.processes:
        beat.stop()
    numbers = [each["headers"]["argsrepr"] for each in fleet.messages()]
    assert set(fleet.sent().values()) == {1}
    assert sorted(numbers) == sorted(f"({n},)" for n in range(1, len(numbers) + 1))
    assert int(fleet.redis.get("evaluated") or 0) == len(numbers)


def test_a_worker_that_knows_nothing_of_slotqueue_gets_one_message_a_slot(fleet: Fleet) -> None:
    fleet.beats(2)
    fleet.start(WORKER).wait_for("ready.")
    eventually(lambda: len(list(fleet.redis.scan_iter("effects:*"))) >= 4, what="runs")
    keys = [key.removeprefix("effects:") for key in fleet.redis.scan_iter("effects:*")]
    assert {fleet.redis.llen(f"effects:{key}") for key in keys} == {1}
    assert {fleet.record(key)["state"] for key in keys} <= {"sent", "claimed"}


def test_one_line_guards_workers_that_have_no_slot_queue(fleet: Fleet) -> None:
    fleet.start(WORKER, guarded=True).wait_for("ready.")
    eventually(lambda: fleet.redis.hlen("ran:workers"), what="an enlisted worker")
    fleet.beats(2)
    eventually(lambda: len(list(fleet.redis.scan_iter("*:done"))) >= 3, what="done slots")
    key = next(iter(fleet.redis.scan_iter("ran:each second:*:done"))).removesuffix(":done")
    assert fleet.record(key)["state"] == "done"
    assert fleet.redis.llen(f"effects:{key}") == 1


# ---- in the worker


def test_every_worker_is_a_replica_and_its_children_are_not(fleet: Fleet) -> None:
    workers = [fleet.start((*WORKER, "-n", f"w{i}@%h"), guarded=True, ticking_workers=True) for i in range(2)]
    for worker in workers:
        worker.wait_for(" ticks")
    eventually(lambda: len(list(fleet.redis.scan_iter("*:done"))) >= 3, what="done slots")
    workers[0].kill()
    before = len(list(fleet.redis.scan_iter("*:done")))
    eventually(lambda: len(list(fleet.redis.scan_iter("*:done"))) >= before + 3, what="slots after a death")
    code, took = workers[1].stop(signal.SIGTERM)
    assert code == 0, workers[1].log
    assert took < 12
    assert {each.rpartition(":")[2] for each in fleet.redis.smembers("tickers")} == {"0"}
    counts = {fleet.redis.llen(key) for key in fleet.redis.scan_iter("effects:*")}
    assert counts == {1}


@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_a_slot_queue_ticks_in_workers_whatever_their_pool(fleet: Fleet, pool: str) -> None:
    worker = fleet.start((*WORKER, "-P", pool), ticking_slots={"nap": {"every": 1, "task": "sleep", "args": [0.6]}})
    worker.wait_for(" ticks")
    eventually(lambda: len(list(fleet.redis.scan_iter("ran:nap:*:done"))) >= 3, what="done slots")
    assert worker.stop()[0] == 0, worker.log
    keys = [key.removesuffix(":done") for key in fleet.redis.scan_iter("ran:nap:*:done")]
    assert {tuple(fleet.redis.lrange(f"effects:{key}", 0, -1)) for key in keys} == {("began", "ended")}


def test_beats_that_are_embedded_in_workers_send_one_message_a_slot(fleet: Fleet) -> None:
    scheduler = "slotqueue.beat.SlotScheduler"
    workers = [
        fleet.start((*WORKER, "-B", "-n", "one@%h", "--scheduler", scheduler), guarded=True),
        fleet.start((*WORKER, "-B", "-n", "two@%h"), guarded=True, beat_scheduler=scheduler),
    ]
    for worker in workers:
        worker.wait_for(" ticks")
    eventually(lambda: len(list(fleet.redis.scan_iter("*:done"))) >= 3, what="done slots")
    for worker in workers:
        assert worker.stop()[0] == 0, worker.log
    assert {fleet.redis.llen(key) for key in fleet.redis.scan_iter("effects:*")} == {1}


def test_beats_send_one_message_a_slot_over_rabbitmq(fleet: Fleet, rabbitmq: RabbitMQ) -> None:
    taken(rabbitmq.url, "beats")
    entries = {"each second": {"task": "work", "schedule": 1, "options": {"queue": "beats"}}}
    beats = fleet.beats(2, entries=entries, broker_url=rabbitmq.url, slotqueue_url=fleet.url)
    eventually(lambda: len(list(fleet.redis.scan_iter("*:record"))) >= 4, what="slots")
    for beat in beats:
        assert beat.stop()[0] == 0, beat.log
    sent = [message.headers["id"] for message in taken(rabbitmq.url, "beats")]
    assert sorted(sent) == sorted(key.removesuffix(":record") for key in fleet.redis.scan_iter("*:record"))
    assert len(sent) == len(set(sent)) >= 4


def test_a_beat_whose_claims_never_arrive_wins_nothing_and_heals_itself(fleet: Fleet, server: Server) -> None:
    """Case 7, sibson/redbeat#208: an error while claiming was taken for a win."""
    with Proxy(server.port) as proxy:
        (healthy,) = fleet.beats(1)
        cut_off = fleet.start(slotqueue_url=proxy.url)
        cut_off.wait_for(" ticks")
        proxy.reset_whoever_says(hashlib.sha1(source_of("claim").encode()).hexdigest())
        cut_off.wait_for("what is due stays due")
        before = set(fleet.sent())
        eventually(lambda: len(set(fleet.sent()) - before) >= 6, what="messages by the other")
        during = set(fleet.sent()) - before
        assert proxy.resets > 1
        proxy.forward()
        cut_off.wait_for("Redis answers again after")
        healthy.kill()
        last = max(map(fire_time, fleet.sent()))
        eventually(
            lambda: sum(fire_time(key) > last for key in fleet.sent()) >= 3,
            what="messages by the beat that was cut off",
        )
    assert set(fleet.sent().values()) == {1}
    assert not [key for key in during if f"-{cut_off.pid}-" in fleet.record(key)["by"]]
    newest = max(fleet.sent(), key=fire_time)
    assert f"-{cut_off.pid}-" in fleet.record(newest)["by"]
    assert cut_off.stop()[0] == 0
    assert "Traceback" not in cut_off.log
