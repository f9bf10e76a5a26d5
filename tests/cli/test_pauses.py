"""`slotqueue pause` and `resume`: what falls due meanwhile is skipped and not caught up."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slotqueue.ops.operator import operator
from slotqueue.protocols import Process
from slotqueue.slots import from_ms
from tests.cli.conftest import Slotqueue
from tests.hours import hourly
from tests.store.registering import hourly_job, register
from tests.store.stage import EPOCH_VALUE, HOUR, Stage

WriteApp = Callable[..., None]
JOBS = f'slots.add("rollup", {hourly()!r})\nslots.add("weekly", Cron("0 0 * * 0"))\n'


@pytest.fixture
def known(stage: Stage) -> Stage:
    jobs = [stage.known(stage.job(name)) for name in ("rollup", "weekly")]
    stage.run(stage.verbs.register(Process("r1"), jobs, epoch=EPOCH_VALUE, is_last=True))
    return stage


def told(slotqueue: Slotqueue, url: str, *words: str) -> Any:
    result = slotqueue(*words, "--redis", url, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_pause_says_who_until_when_and_why_and_ends_with_resume(
    slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    assert slotqueue("pause", "--redis", redis_url).stdout == "nothing is paused\n"
    result = slotqueue("pause", "rollup", "weekly", "--until", "2h", "--why", "database upgrade", "--redis", redis_url)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["paused", "rollup", "weekly"]
    assert "database upgrade" in result.stdout
    assert "you resume it" in slotqueue("pause", "--all", "--redis", redis_url).stdout
    rows = told(slotqueue, redis_url, "pause")
    assert [row["job"] for row in rows] == [None, "rollup", "weekly"]
    assert [row["by"] for row in rows] == [operator()] * 3
    assert rows[0]["until"] is None
    left = datetime.fromisoformat(rows[1]["until"]) - datetime.now(UTC)
    assert timedelta(hours=1, minutes=59) < left <= timedelta(hours=2)

    result = slotqueue("resume", "rollup", "--redis", redis_url)
    assert (result.exit_code, "but all jobs are paused" in result.stdout) == (0, True)
    assert told(slotqueue, redis_url, "resume", "--all") == {"resumed": [], "all": True, "next": {"rollup": []}}
    assert [row["job"] for row in told(slotqueue, redis_url, "pause")] == ["weekly"]


def test_what_falls_due_in_a_pause_is_skipped_and_not_caught_up(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    """Case 41, celery/django-celery-beat#537; celery/celery#4806, #370: re-enabled on a Friday, it fired at once."""
    write_app(JOBS, redis_url)
    slotqueue("tick", "app:slots")
    slotqueue("pause", "weekly", "--redis", redis_url)
    three_weeks = 21 * 24 * HOUR
    known.age(three_weeks)
    since = known.now() - three_weeks
    known.redis.hset("ran:pausers", "weekly", f"{since} alice@web-1 holidays")
    for name in ("rollup", "weekly"):  # nothing was removed meanwhile: replicas were up, or all were down
        version, *_ = str(known.redis.hget("ran:jobs", name)).split()[-1].split(":")
        known.redis.hset("ran:jobs", name, f"{version}:{since}:{since}:0")
    known.redis.hset("ran:jobs", "", f"{since}:0")
    known.redis.hset("ran:decided", mapping={"weekly": since, "rollup": known.now()})

    shown = told(slotqueue, redis_url, "resume", "app:slots", "weekly", "--dry-run")
    assert all(datetime.fromisoformat(at).weekday() == 6 for at in shown["weekly"])
    assert min(datetime.fromisoformat(at) for at in shown["weekly"]) > datetime.now(UTC)
    assert known.redis.hget("ran:pauses", "weekly") == "0", "a dry run changes nothing"
    assert slotqueue("resume", "weekly", "--redis", redis_url).exit_code == 0
    result = slotqueue("tick", "app:slots")
    assert "enqueuing" not in result.stdout
    assert "skipped" in result.stdout
    keys = known.redis.zrange("ran:weekly:slots", 0, -1)
    assert {known.record(f"ran:weekly:{tail}")["why"] for tail in keys} == {"paused"}
    assert len(keys) >= 2


@pytest.mark.parametrize(
    "words, message",
    [
        (["pause", "rollup", "--until", "2020-01-01"], "until: 2020-01-01T00:00:00Z has passed"),
        (["pause", "rollup", "--until", "soon"], "'soon' is no instant; one looks like 2h, 30min or"),
        (["pause", "rollup", "--all"], "name jobs, or say --all"),
        (["pause", "--why", "no job"], "say what to pause"),
        (["pause", "rollup", "--why", "x" * 301], "one line of 300 characters at most"),
        (["pause", "rolup"], "did you mean 'rollup'?"),
        (["resume"], "name jobs, or say --all"),
        (["resume", "rollup"], "job 'rollup': it is not paused"),
        (["resume", "rolup"], "did you mean 'rollup'?"),
        (["resume", "--all"], "there is no pause of all jobs; paused are 'weekly': name them"),
    ],
)
def test_wrong_words_are_2_and_change_nothing(
    slotqueue: Slotqueue, known: Stage, redis_url: str, words: list[str], message: str
) -> None:
    known.pause("weekly")
    before = known.snapshot()
    result = slotqueue(*words, "--redis", redis_url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.replace("\n", " ")
    assert known.snapshot() == before


def test_a_single_job_under_a_pause_of_all_is_told_so_and_a_dry_run_tells_all(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    known.pause("*")
    result = slotqueue("resume", "rollup", "--redis", redis_url)
    assert (result.exit_code, "all jobs are paused: resume them all" in result.stderr) == (2, True)
    result = slotqueue("resume", "--all", "--dry-run", "--redis", redis_url)
    assert "not known: name its application" in result.stdout
    result = slotqueue("resume", "app:slots", "--all", "--dry-run")
    assert "2 jobs would go on; nothing was changed" in result.stdout
    assert known.redis.hget("ran:pauses", "*") == "0"


def test_what_goes_on_is_told_by_the_registry(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage, hourly_job())
    slotqueue("pause", "rollup", "--redis", redis_url)
    following = from_ms((stage.now() // HOUR + 1) * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")
    fires = told(slotqueue, redis_url, "resume", "rollup", "--dry-run")["rollup"]
    assert (fires[0], len(fires)) == (following, 3)
    result = slotqueue("resume", "rollup", "--redis", redis_url)
    first, *table = result.stdout.splitlines()
    assert first == "rollup: going on with the next slot"
    assert table[1].startswith(f"rollup  {following}, ")
