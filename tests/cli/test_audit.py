"""`slotqueue audit`: every slot that was due has exactly one outcome, and nothing is guessed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slotqueue import Cron, Every
from slotqueue.answers import Gap, Offer
from slotqueue.jobs import Job
from slotqueue.ops import Outcome
from slotqueue.slots import Slot, from_ms, key_at
from tests.cli.conftest import Slotqueue
from tests.store.registering import hourly_job, register
from tests.store.stage import DAY, EPOCH_VALUE, HOUR, NAMESPACE, Stage


class Past:
    """The last hours of an hourly job, as a stage can cause them."""

    def __init__(self, stage: Stage, job: Job) -> None:
        self.stage = stage
        self.job = job
        self.hour = stage.now() // HOUR

    def slot(self, ago: int) -> Slot:
        """Its slot so many whole hours ago."""
        fire = from_ms((self.hour - ago) * HOUR)
        return Slot(key_at(NAMESPACE, self.job.name, fire), self.job.name, fire, fire - timedelta(hours=1))

    def gap(self, ago: int, why: str) -> None:
        until = (self.hour - ago) * HOUR
        gap = Gap(self.job, until - 1, until, why)
        self.stage.run(self.stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))


@pytest.fixture
def past(stage: Stage) -> Past:
    past = Past(stage, hourly_job())
    register(stage, past.job, since=past.hour * HOUR - 20 * HOUR)
    return past


def asked(slotqueue: Slotqueue, url: str, *args: str, code: int = 1) -> dict[str, Any]:
    result = slotqueue("audit", "--redis", url, "--json", *args)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def outcomes(row: dict[str, Any]) -> dict[str, int]:
    return {word: number for word, number in row["outcomes"].items() if number}


def refused(slotqueue: Slotqueue, url: str, *args: str) -> str:
    result = slotqueue("audit", "--redis", url, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_every_slot_has_one_outcome(slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past) -> None:
    expiring = replace(past.job, policy=replace(past.job.policy, expires=60))
    again = replace(past.job, policy=replace(past.job.policy, on_failure="again"))
    skip = replace(past.job, policy=replace(past.job.policy, on_crash="skip"))
    past.gap(2, "coalesced into a newer slot")
    past.gap(1, "older than the lookback")
    prompt = stage.running(past.job, past.slot(3))
    stage.finish(prompt)
    stage.redis.hset(f"{prompt.slip.key}:record", "ended", prompt.slip.fire + 1000)
    stage.finish(stage.running(past.job, past.slot(4)))
    stage.fail(stage.running(past.job, past.slot(5)))
    lost = stage.running(skip, past.slot(6))
    stage.swept(lost.slip.key)
    stage.claim(Offer(expiring, past.slot(7)))
    stage.pause()
    stage.claim(Offer(past.job, past.slot(8)))
    stage.redis.delete("ran:pauses")
    stage.queued(past.job, past.slot(9))
    stage.redis.delete("ran:tasks")
    stage.confirm(stage.claimed(past.job, past.slot(10)))
    stage.redis.delete(f"{stage.claimed(past.job, past.slot(11)).key}:record")
    twice = stage.running(again, past.slot(12))
    stage.fail(twice)
    stage.finish(twice)
    since, until = past.slot(16).fire_time.isoformat(), past.slot(1).fire_time.isoformat()
    found = asked(slotqueue, redis_url, "--since", since, "--until", until)
    (row,) = found["jobs"]
    expected = {outcome.value: 1 for outcome in Outcome} | {"done late": 2, "never decided": 3}
    del expected["open"]  # none of these is young enough to be open and not overdue
    assert outcomes(row) == expected
    assert row["slots"] == sum(expected.values())
    assert row["repeated"] == 1
    assert row["examples"]["dead"] == [past.slot(5).key]
    assert past.slot(13).key in row["examples"]["never decided"]
    assert found["totals"]["outcomes"] == row["outcomes"]
    assert not found["is_sound"]


def test_text_tells_sums_and_keys(slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past) -> None:
    stage.fail(stage.running(past.job, past.slot(2)))
    until = past.slot(1).fire_time.isoformat()
    since = past.slot(8).fire_time.isoformat()
    result = slotqueue("audit", "--redis", redis_url, "--since", since, "--until", until)
    assert result.exit_code == 1
    first, _, columns, row, sums, *bad = result.stdout.splitlines()
    assert first.startswith("7 slots due after ")
    assert " ".join(columns.split()) == "job slots done missed dead never decided repeated"
    assert (row.split(), sums.split()) == (["rollup", "7", "1", "6"], ["in", "all", "7", "1", "6"])
    assert bad[0] == f"dead: {past.slot(2).key}"
    keys = ", ".join(past.slot(ago).key for ago in (7, 6, 5, 4, 3))
    assert bad[1] == f"never decided: {keys} and 1 more"


def test_all_done_is_0(slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past) -> None:
    for ago in (1, 2):
        stage.finish(stage.running(past.job, past.slot(ago)))
    since, until = past.slot(3).fire_time.isoformat(), past.slot(1).fire_time.isoformat()
    found = asked(slotqueue, redis_url, "--since", since, "--until", until, code=0)
    assert outcomes(found["totals"]) == {"done late": 2}
    result = slotqueue("audit", "--redis", redis_url, "--since", since, "--until", until, "--bad")
    assert result.stdout.startswith("2 slots due after ")
    assert "rollup" not in result.stdout


def test_the_schedules_that_were_in_force_are_expected(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past
) -> None:
    at = past.hour * HOUR
    half = str(Cron("30 * * * *"))
    stage.redis.hset("ran:jobs", "rollup", f"v2:{at - 4 * HOUR}:{stage.now()}:0")
    stage.redis.hset("ran:past", "rollup", f"v1:{at - 12 * HOUR}:{at - 4 * HOUR}")
    stage.redis.hset("ran:schedules", mapping={"v1": "every 7200s offset 3600s", "v2": half})
    since, until = from_ms(at - 10 * HOUR).isoformat(), from_ms(at - HOUR).isoformat()
    found = asked(slotqueue, redis_url, "--since", since, "--until", until)
    assert outcomes(found["totals"]) == {"never decided": 3 + 3}


def test_a_slot_on_record_counts_whatever_the_schedule_says(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past
) -> None:
    between = replace(
        past.slot(2), key=f"{past.slot(2).key[:-2]}10", fire_time=past.slot(2).fire_time.replace(minute=10)
    )
    stage.finish(stage.running(past.job, between))
    since, until = past.slot(2).fire_time.isoformat(), past.slot(1).fire_time.isoformat()
    found = asked(slotqueue, redis_url, "--since", since, "--until", until)
    assert outcomes(found["totals"]) == {"done": 1, "never decided": 1} or outcomes(found["totals"]) == {
        "done late": 1,
        "never decided": 1,
    }


def test_slots_of_an_operator_are_counted_apart(slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past) -> None:
    slot = past.slot(1)
    stage.claimed(past.job, replace(slot, key=f"{slot.key}~t1"))
    stage.finish(stage.running(past.job, slot))
    found = asked(
        slotqueue,
        redis_url,
        "--since",
        past.slot(2).fire_time.isoformat(),
        "--until",
        slot.fire_time.isoformat(),
        code=0,
    )
    assert (found["totals"]["slots"], found["totals"]["by_hand"]) == (1, 1)


def test_a_removed_job_owes_nothing_from_then(slotqueue: Slotqueue, stage: Stage, redis_url: str, past: Past) -> None:
    at, version = past.hour * HOUR, past.job.schedule_version
    fleet = f"{stage.now()}:{DAY}"
    stage.redis.hset("ran:jobs", mapping={"rollup": f"{version}:{at - 9 * HOUR}:{at - 5 * HOUR}:0", "": fleet})
    found = asked(slotqueue, redis_url, "--since", "12h")
    assert outcomes(found["totals"]) == {"never decided": 4}


def test_a_range_from_which_records_may_have_expired_is_refused(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    job = hourly_job("short", history=DAY // 1000, retention=DAY // 1000)
    register(stage, job, hourly_job(), since=stage.now() - 9 * DAY)
    said = refused(slotqueue, redis_url, "--since", "3d")
    assert said.startswith("Error: job 'short', since: its records live for 1 d after the end (`history`)")
    assert slotqueue("audit", "--redis", redis_url, "--since", "3d", "--job", "rollup").exit_code == 1
    found = asked(slotqueue, redis_url, "--since", "24h", "--job", "short")  # the edge loses a slot at most
    assert found["totals"]["slots"] in (23, 24)


def test_a_job_younger_than_the_range_is_no_reason_to_refuse(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    register(stage, hourly_job("short", history=DAY // 1000, retention=DAY // 1000))
    assert asked(slotqueue, redis_url, "--since", "30d", code=0)["totals"]["slots"] == 0


@pytest.mark.parametrize("schedule", [Every(seconds=1), Cron("* * * * * *", seconds=True)], ids=str)
def test_a_range_of_a_million_slots_is_refused(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, schedule: Every | Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(schedule, Cron):  # the same limit, at a size that a test can afford
        monkeypatch.setattr(sys.modules["slotqueue.ops.audit"], "MOST_SLOTS", 5000)
    register(stage, hourly_job(schedule=schedule, history=80 * DAY // 1000), since=stage.now() - 20 * DAY)
    said = refused(slotqueue, redis_url, "--since", "12d")
    assert "the range holds more than 5" in said
    assert "ask for a shorter one, or for single jobs" in said


@pytest.mark.parametrize(
    "args, says",
    [
        (["--since", "2999-01-01T00:00Z"], "2999-01-01T00:00:00Z lies ahead; right is an instant before now"),
        (["--since", "1h", "--until", "2999-01-01T00:00Z"], "right is an instant up to now"),
        (["--since", "1h", "--until", "2h"], "is not before"),
        (["--since", "yesterday"], "'yesterday' is no instant; one looks like 24h, 90min or"),
        (["--since", "99999999999d"], "is too long ago"),
        ([], "Missing option '--since'"),
        (["--since", "1h", "--job", "rolup"], "did you mean 'rollup'?"),
    ],
)
def test_a_bad_question_is_2_and_says_what_is_right(
    slotqueue: Slotqueue, past: Past, redis_url: str, args: list[str], says: str
) -> None:
    assert says in refused(slotqueue, redis_url, *args)


def test_a_schedule_that_only_the_application_can_compute_is_said(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    class Sunset(Every):
        def __str__(self) -> str:
            return "sunset"

    job = hourly_job(schedule=Sunset(hours=1))
    register(stage, job, since=stage.now() - DAY)
    stage.finish(stage.running(job, stage.slot(job, ago=60)))
    result = slotqueue("audit", "--redis", redis_url, "--since", "5h")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 slot due after ")
    assert result.stderr.startswith(
        "1 job with a schedule that only the application can compute ('rollup', for example)"
    )


def test_without_redis_it_is_3(slotqueue: Slotqueue) -> None:
    assert slotqueue("audit", "--since", "1h", "--redis", "redis://127.0.0.1:1/0").exit_code == 3


def test_it_changes_nothing(slotqueue: Slotqueue, stage: Stage, past: Past, redis_url: str) -> None:
    stage.running(past.job, past.slot(1))
    before = stage.snapshot()
    slotqueue("audit", "--redis", redis_url, "--since", "5h")
    assert stage.snapshot() == before


def test_where_nothing_is_known_nothing_is_sound(
    slotqueue: Slotqueue, write_app: Callable[..., None], stage: Stage, redis_url: str
) -> None:
    result = slotqueue("audit", "--redis", redis_url, "--namespace", "rann", "--since", "1h")
    said = "no job is known in the namespace 'rann'; no replica has registered there\n"
    assert (result.exit_code, result.stdout) == (1, said)
    write_app('slots.add("rollup", Every(hours=1))\nslots.add("digest", Every(hours=1))\n', redis_url)
    register(stage, hourly_job(), since=stage.now())
    result = slotqueue("audit", "app:slots", "--since", "1h")
    assert (result.exit_code, "never registered: digest: " in result.stdout) == (1, True)
    assert slotqueue("audit", "app:slots", "--since", "1h", "--job", "rollup").exit_code == 0
    found = json.loads(slotqueue("audit", "app:slots", "--since", "1h", "--job", "digest", "--json").stdout)
    assert (found["is_sound"], found["is_known"], found["never_registered"]) == (False, True, ["digest"])
