"""`slotqueue tick` and `slotqueue sweep`: one pass each, by a process that knows nothing from before."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from slotqueue.slots import SlotState
from tests.cli.conftest import Slotqueue, Start
from tests.hours import hourly
from tests.servers import Server
from tests.store.stage import HOUR, Stage

WriteApp = Callable[..., None]
HOURLY = f'slots.add("ping", {hourly()!r}, lookback=2)\n'


def known_for(stage: Stage, job: str, ms: int) -> None:
    """Let a job have been known, and decided up to then, for that long: nobody has made a pass since."""
    version, since, *rest = stage.redis.hget("ran:jobs", job).split(":")
    stage.redis.hset("ran:jobs", job, ":".join([version, str(int(since) - ms), *rest]))


def test_a_job_is_new_at_its_first_tick_and_owes_nothing(
    write_app: WriteApp, slotqueue: Slotqueue, redis_url: str
) -> None:
    write_app('slots.add("nightly", Cron("0 3 * * *"))\n', redis_url)
    result = slotqueue("tick", "app:slots")
    assert (result.exit_code, result.stdout) == (0, "nothing was due\n")


def test_a_fresh_process_catches_up_what_the_registry_says_is_owed(
    write_app: WriteApp, start: Start, stage: Stage, redis_url: str
) -> None:
    write_app(HOURLY, redis_url)
    assert start("tick", "app:slots").process.wait(20) == 0
    known_for(stage, "ping", 10 * HOUR)
    tick = start("tick", "app:slots", "--json")
    assert tick.process.wait(20) == 0, tick.err
    counts = json.loads(tick.out[tick.out.index("{") :])
    assert (counts["offered"], counts["won"], counts["sent"]) == (3, 3, 3)
    missed = stage.redis.lrange("ran:ping:missed", 0, -1)
    assert len(missed) == 1
    assert missed[0].endswith("older than the lookback")


def test_the_counts_are_said_in_words(write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    write_app(f'slots.add("ping", {hourly()!r}, lookback=0)\n', redis_url)
    slotqueue("tick", "app:slots")
    known_for(stage, "ping", 2 * HOUR)
    result = slotqueue("tick", "app:slots")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "offered 1, won 1, sent 1"


def test_a_tick_leaves_no_replica_behind(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    write_app(HOURLY, redis_url)
    slotqueue("tick", "app:slots")
    assert stage.redis.hkeys("ran:replicas") == ["r1"]


def test_a_queue_that_refuses_ends_the_tick_with_1(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    write_app(HOURLY + 'fake.answer = Refused("the queue is full")\n', redis_url)
    slotqueue("tick", "app:slots")
    known_for(stage, "ping", HOUR)
    result = slotqueue("tick", "app:slots")
    assert result.exit_code == 1
    assert "refused 1" in result.stdout


@pytest.mark.parametrize("verb", ["tick", "sweep"])
def test_without_redis_a_pass_ends_with_3_and_one_line(write_app: WriteApp, slotqueue: Slotqueue, verb: str) -> None:
    write_app(HOURLY, "redis://:hunter2@127.0.0.1:1/0")
    result = slotqueue(verb, "app:slots")
    assert result.exit_code == 3
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: Redis at redis://:***@127.0.0.1:1/0: ")
    assert "hunter2" not in line


def test_a_redis_that_does_not_answer_ends_a_pass_with_3(
    write_app: WriteApp, slotqueue: Slotqueue, own_server: Server
) -> None:
    write_app(HOURLY, own_server.url)
    own_server.pause()
    assert slotqueue("tick", "app:slots").exit_code == 3
    own_server.resume()


def test_a_sweep_takes_over_what_a_vanished_replica_left(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    slip = stage.claimed(stage.job())
    stage.pass_deadline(slip.key)
    write_app('slots.add("rollup", Every(hours=1))\n', redis_url)
    result = slotqueue("sweep", "app:slots", "--json")
    assert result.exit_code == 0, result.output
    counts = json.loads(result.stdout[result.stdout.index("{") :])
    assert (counts["overdue"], counts["enqueue"], counts["sent"]) == (1, 1, 1)
    assert stage.state(slip.key) == SlotState.SENT


def test_a_sweep_stays_for_a_third_of_the_lease_before_it_judges_a_silent_worker(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    run = stage.running(stage.job(lease=3))
    stage.pass_deadline(run.slip.key)
    write_app('slots.add("rollup", Every(hours=1))\n', redis_url)
    result = slotqueue("sweep", "app:slots", "--wait", "15")
    assert result.exit_code == 0, result.output
    assert "enqueue 1" in result.stdout.splitlines()[-1]
    assert "later" not in result.stdout.splitlines()[-1]


def test_a_sweep_that_may_not_wait_says_what_it_left(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    run = stage.running(stage.job(lease=3))
    stage.pass_deadline(run.slip.key)
    write_app('slots.add("rollup", Every(hours=1))\n', redis_url)
    result = slotqueue("sweep", "app:slots", "--wait", "0")
    assert result.stdout.splitlines()[-1] == "overdue 1, later 1"
    assert stage.state(run.slip.key) == SlotState.RUNNING


def test_a_sweep_with_nothing_to_do_says_so(write_app: WriteApp, slotqueue: Slotqueue, redis_url: str) -> None:
    write_app(HOURLY, redis_url)
    result = slotqueue("sweep", "app:slots")
    assert (result.exit_code, result.stdout) == (0, "nothing was overdue\n")
