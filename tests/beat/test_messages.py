"""What beats and ticking workers send: what Celery's own beat does, under the slot's key."""

from __future__ import annotations

import signal

import pytest

from tests.beat.process import WORKER, Fleet, eventually

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]


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


def test_a_worker_with_a_solo_pool_ticks_while_it_works(fleet: Fleet) -> None:
    entries = {"nap": {"task": "sleep", "schedule": 1, "args": [0.6]}}
    fleet.start((*WORKER, "-P", "solo"), entries=entries, guarded=True, ticking_workers=True).wait_for(" ticks")
    eventually(lambda: len(list(fleet.redis.scan_iter("*:done"))) >= 3, what="done slots")
