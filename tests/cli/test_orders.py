"""`slotqueue retry`, `rerun`, `trigger`, `dead` and `forget`: from a Redis alone, and out by the next sweep."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from slotqueue.ops.operator import operator
from slotqueue.slots import SlotState, parse_key
from tests.cli.conftest import Slotqueue
from tests.store.registering import hourly_job, register
from tests.store.stage import HOUR, MINUTE, Stage

WriteApp = Callable[..., None]
ROLLUP = 'slots.add("rollup", Every(hours=1), task="do_rollup")\n'
BY = operator()
BACK = [SlotState.DEAD, SlotState.LOST, SlotState.SKIPPED, SlotState.MISSED]


@pytest.fixture
def known(stage: Stage) -> Stage:
    """A replica is up and knows the job."""
    register(stage, hourly_job())
    return stage


def told(slotqueue: Slotqueue, url: str, *words: str, code: int = 0) -> Any:
    result = slotqueue(*words, "--redis", url, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def swept(slotqueue: Slotqueue) -> list[str]:
    """The slots that the application's next sweep enqueues."""
    result = slotqueue("sweep", "app:slots")
    assert result.exit_code == 0, result.output
    return [word for line in result.stdout.splitlines() if line.startswith("enqueuing") for word in line.split()[1:]]


@pytest.mark.parametrize("state", BACK)
def test_a_retried_slot_is_enqueued_by_the_next_sweep_under_its_own_id(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str, state: SlotState
) -> None:
    write_app(ROLLUP, redis_url)
    key = known.in_state(state)[0].key
    result = slotqueue("retry", key, "--redis", redis_url)
    assert result.exit_code == 0
    assert result.stdout == f"{key} goes out with the next sweep of a replica that knows the job.\n"
    assert any(text.startswith(f"retried by {BY}, was {state}") for text in known.past(key))
    assert swept(slotqueue) == [key]
    shown = slotqueue("show", key, "--redis", redis_url).stdout
    assert f"retried by {BY}" in shown


@pytest.mark.parametrize(
    "state, expected",
    [
        (SlotState.DONE, "done; `slotqueue rerun` repeats it"),
        (SlotState.SENT, "nobody reports whether it ran; `slotqueue rerun`"),
        (SlotState.RUNNING, "is running: it has not ended yet"),
    ],
)
def test_what_makes_no_sense_to_retry_is_1_and_says_why(
    slotqueue: Slotqueue, known: Stage, redis_url: str, state: SlotState, expected: str
) -> None:
    key = known.in_state(state)[0].key
    before = known.snapshot()
    result = slotqueue("retry", key, "--redis", redis_url)
    assert result.exit_code == 1
    assert expected in result.stdout
    found = told(slotqueue, redis_url, "retry", key, code=1)
    assert (found["key"], found["is_taken"], found["by"]) == (key, False, BY)
    assert known.snapshot() == before


def test_no_replica_a_pause_and_no_record_are_said(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    stage.redis.hset("ran:jobs", "rollup", "v1:1:1:1")
    stage.redis.delete("ran:replicas")
    key = stage.in_state(SlotState.DEAD)[0].key
    assert slotqueue("pause", "rollup", "--redis", redis_url).exit_code == 0
    result = slotqueue("retry", key, "--redis", redis_url)
    assert (result.exit_code, "'rollup' is paused; `slotqueue resume`" in result.stdout) == (1, True)
    assert slotqueue("resume", "rollup", "--redis", redis_url).exit_code == 0
    assert "No replica is up: nothing happens until one is." in slotqueue("retry", key, "--redis", redis_url).stdout
    result = slotqueue("retry", "ran:rollup:2026-10-02T03:00", "--redis", redis_url)
    assert (result.exit_code, "name it as MODULE:ATTRIBUTE" in result.stdout) == (1, True)


@pytest.mark.parametrize("words, kind", [(["app:slots"], "fake"), ([], "arq")])
def test_a_missed_slot_without_a_record_is_retried_by_the_schedule(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str, words: list[str], kind: str
) -> None:
    write_app(ROLLUP, redis_url)
    key = "ran:rollup:2026-10-02T03:00"
    assert slotqueue("retry", *words, key, "--redis", redis_url).exit_code == 0
    record = known.record(key)
    assert (record["task"], record["by"]) == (f"{kind}:do_rollup", BY)
    assert int(record["fire"]) - int(record["start"]) == HOUR
    result = slotqueue("retry", *words, "ran:rollup:2026-10-02T03:30", "--redis", redis_url)
    assert (result.exit_code, "it is not a slot of the schedule (every 1 h)" in result.stdout) == (1, True)
    assert swept(slotqueue) == [key]


@pytest.mark.parametrize("verb", ["retry", "rerun"])
@pytest.mark.parametrize(
    "key, message",
    [
        ("nonsense", "'nonsense' is no slot key; one looks like"),
        ("ran:rollup:2026-13-02T03:00", "is no slot key"),
        ("mine:rollup:2026-10-02T03:00", "is of the namespace 'mine', and this is 'ran'"),
    ],
)
def test_a_bad_key_is_2(slotqueue: Slotqueue, known: Stage, redis_url: str, verb: str, key: str, message: str) -> None:
    words = [verb, key, "--redis", redis_url, "--namespace", "ran", *(["--yes"] if verb == "rerun" else [])]
    result = slotqueue(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("state", [SlotState.DONE, SlotState.SENT])
def test_a_rerun_is_a_slot_of_its_own_with_the_time_of_the_first(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str, state: SlotState
) -> None:
    write_app(ROLLUP, redis_url)
    key = known.in_state(state)[0].key
    result = slotqueue("rerun", key, "--redis", redis_url)
    assert (result.exit_code, "say --yes" in result.stderr) == (2, True)
    found = told(slotqueue, redis_url, "rerun", key, "--yes")
    again = found["key"]
    assert re.fullmatch(re.escape(key) + "~r[0-9a-f]{6}", again)
    assert parse_key(again)[:3] == parse_key(key)[:3]
    one, other = known.record(key), known.record(again)
    assert [other[name] for name in ("fire", "start", "task")] == [one[name] for name in ("fire", "start", "task")]
    assert known.state(key) == state
    assert slotqueue("rerun", again, "--yes", "--redis", redis_url).exit_code == 1, "it has not ended"
    assert swept(slotqueue) == [again]
    assert f"rerun of {key} wanted by {BY}" in slotqueue("show", again, "--redis", redis_url).stdout
    assert again in slotqueue("slots", "--redis", redis_url).stdout


def test_what_is_not_done_is_not_rerun(slotqueue: Slotqueue, known: Stage, redis_url: str) -> None:
    key = known.in_state(SlotState.DEAD)[0].key
    result = slotqueue("rerun", key, "--yes", "--redis", redis_url)
    assert (result.exit_code, "`slotqueue retry` brings it back" in result.stdout) == (1, True)


def test_a_triggered_slot_needs_no_code_and_never_collides(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    keys = [told(slotqueue, redis_url, "trigger", "rollup")["key"] for _ in range(2)]
    assert len(set(keys)) == 2
    for key in keys:
        assert re.fullmatch(r"ran:rollup:[\dT:-]+~t[0-9a-f]{6}", key)
        record = known.record(key)
        assert int(record["start"]) % HOUR == 0, "from the schedule's fire time before it"
        assert 0 < int(record["fire"]) - int(record["start"]) <= HOUR
        assert known.past(key)[0] == f"triggered by {BY}"
    assert sorted(swept(slotqueue)) == sorted(keys)
    assert slotqueue("trigger", "app:slots", "rollup").exit_code == 0
    (key,) = swept(slotqueue)
    assert known.record(key)["task"] == "fake:do_rollup"


def test_a_schedule_of_its_own_kind_needs_its_application(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    """A run now needs none: it begins where the job is decided."""
    decided = stage.now() - HOUR
    register(stage, hourly_job(schedule="full moons"), decided=decided)
    key = told(slotqueue, redis_url, "trigger", "rollup")["key"]
    assert stage.record(key)["start"] == str(decided)
    result = slotqueue("retry", "ran:rollup:2026-10-02T03:00", "--redis", redis_url)
    assert (result.exit_code, "name it as MODULE:ATTRIBUTE" in result.stdout) == (1, True)
    words = ["--from", "2026-10-01", "--to", "2026-10-02", "--redis", redis_url]
    result = slotqueue("backfill", "rollup", *words)
    assert (result.exit_code, "only its application can tell its schedule" in result.stderr) == (2, True)


def test_a_job_that_nobody_knows_is_2(write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str) -> None:
    write_app(ROLLUP, redis_url)
    for words in (["trigger"], ["forget"], ["dead", "--job"], ["pause"]):
        result = slotqueue(*words, "rolup", "--redis", redis_url)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "did you mean 'rollup'?" in result.stderr, words
    result = slotqueue("trigger", "--redis", redis_url, "rollup", "digest")
    assert (result.exit_code, "name one job" in result.stderr) == (2, True)


def test_a_trigger_waits_its_turn_or_is_refused_where_slots_must_not_overlap(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    register(known, hourly_job(overlap="forbid"))
    out = known.claimed(known.job(overlap="forbid"))
    result = slotqueue("trigger", "rollup", "--redis", redis_url)
    assert result.exit_code == 1
    assert f"{out.key} was claimed, and no two slots of 'rollup' may be out at once" in result.stdout
    write_app(ROLLUP.replace('"do_rollup")', '"do_rollup", overlap="hold")'), redis_url)
    result = slotqueue("trigger", "app:slots", "rollup")
    assert (result.exit_code, f"is held: {out.key} was claimed." in result.stdout) == (0, True)


def test_dead_letters_are_listed_retried_and_discarded(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    assert slotqueue("dead", "--redis", redis_url).stdout == "0 dead letters\n"
    keys = [known.in_state(state)[0].key for state in (SlotState.DEAD, SlotState.LOST, SlotState.DEAD)]
    result = slotqueue("dead", "--redis", redis_url, "--limit", "2")
    assert result.exit_code == 0
    assert result.stdout.endswith("3 dead letters, the newest 2 shown\n")
    rows = told(slotqueue, redis_url, "dead")
    assert {row["key"] for row in rows} == set(keys)
    assert {row["state"] for row in rows} == {"dead", "lost"}

    orders = told(slotqueue, redis_url, "dead", "--retry-all", "--yes")
    assert {order["key"] for order in orders} == set(keys)
    assert {order["outcome"] for order in orders} == {"claimed"}
    assert sorted(swept(slotqueue)) == sorted(keys)
    assert slotqueue("dead", "--redis", redis_url, "--retry-all", "--yes").stdout == "0 dead letters\n"

    key = known.in_state(SlotState.DEAD)[0].key
    for verb in ("--retry-all", "--discard"):
        result = slotqueue("dead", "--redis", redis_url, verb)
        assert (result.exit_code, key in result.stdout, "say --yes" in result.stderr) == (2, True, True)
    assert len(told(slotqueue, redis_url, "dead")) == 1, "nothing was changed"
    discard = slotqueue("dead", "--redis", redis_url, "--job", "rollup", "--discard", "--yes")
    assert discard.stdout == "1 dead letter discarded\n"
    assert told(slotqueue, redis_url, "dead", "--discard", "--yes") == []
    assert (known.state(key), known.past(key)[-1]) == ("dead", f"discarded by {BY}")
    shown = slotqueue("show", key, "--redis", redis_url).stdout
    assert shown.startswith(f"{key}: dead, discarded\n")
    assert shown.index("dead: ") < shown.index(f"discarded by {BY}\n")
    result = slotqueue("dead", "--redis", redis_url, "--discard", "--retry-all")
    assert (result.exit_code, "not both" in result.stderr) == (2, True)


def test_letters_of_a_paused_job_are_left_and_that_is_1(slotqueue: Slotqueue, known: Stage, redis_url: str) -> None:
    key = known.in_state(SlotState.DEAD)[0].key
    slotqueue("pause", "--all", "--redis", redis_url)
    result = slotqueue("dead", "--retry-all", "--yes", "--redis", redis_url)
    assert (result.exit_code, result.stdout) == (1, f"{key} was left alone: paused.\n1 dead letter: paused 1\n")


def test_a_job_is_forgotten_once_it_is_gone_from_the_code(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    queued, running = known.queued(), known.running()
    result = slotqueue("forget", "rollup", "--redis", redis_url)
    assert (result.exit_code, "ago that it knows it: remove it from the code" in result.stderr) == (2, True)
    entry = str(known.redis.hget("ran:jobs", "rollup")).split(":")
    entry[2] = str(known.now() - 7 * MINUTE)
    known.redis.hset("ran:jobs", "rollup", ":".join(entry))
    result = slotqueue("forget", "app:slots", "rollup")
    assert (result.exit_code, "the application has it" in result.stderr) == (2, True)
    found = told(slotqueue, redis_url, "forget", "rollup")
    assert found == {"job": "rollup", "missed": [queued.key], "left": [running.slip.key], "by": BY}
    assert known.record(queued.key)["why"] == f"the job rollup was forgotten by {BY}"
    result = slotqueue("forget", "rollup", "--redis", redis_url)
    assert (result.exit_code, "made this job known" in result.stderr) == (2, True)


def test_a_redis_that_is_away_is_3(slotqueue: Slotqueue) -> None:
    for words in (["retry", "ran:rollup:2026-10-02T03:00"], ["trigger", "rollup"], ["dead"], ["pause", "--all"]):
        assert slotqueue(*words, "--redis", "redis://127.0.0.1:1/0").exit_code == 3, words
