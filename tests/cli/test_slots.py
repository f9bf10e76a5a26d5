"""`slotqueue slots`: the newest slots, from Redis alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from slotqueue.answers import Gap
from slotqueue.slots import SlotState
from slotqueue.words import instant
from tests.cli.conftest import Slotqueue
from tests.store.stage import EPOCH_VALUE, HOUR, Stage

WriteApp = Callable[..., None]


def listed(slotqueue: Slotqueue, url: str, *args: str) -> list[str]:
    result = slotqueue("slots", "--redis", url, "--json", *args)
    assert result.exit_code == 0, result.output
    return [row["key"] for row in json.loads(result.stdout)]


def known(stage: Stage, *names: str) -> None:
    """Let the registry know these jobs, as replicas do before they claim."""
    for name in names:
        stage.redis.hset("ran:jobs", name, "v1:1:1:1")


def test_the_newest_come_first_over_all_jobs(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "a", "b:c", "with blank")
    slips = []
    for ago, name in enumerate(("a", "b:c", "a", "with blank", "a", "b:c"), start=1):
        job = stage.job(name)
        slips.append(stage.claimed(job, stage.slot(job, ago * 10)))
    assert listed(slotqueue, redis_url) == [slip.key for slip in slips]
    assert listed(slotqueue, redis_url, "--limit", "4") == [slip.key for slip in slips[:4]]
    assert listed(slotqueue, redis_url, "--job", "b:c") == [slips[1].key, slips[5].key]


def test_a_row_tells_who_when_and_why(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup")
    run = stage.running(stage.job(on_failure="dead"))
    stage.fail(run, "ValueError: no")
    (row,) = json.loads(slotqueue("slots", "--redis", redis_url, "--json").stdout)
    assert row["key"] == run.slip.key
    assert (row["state"], row["replica"], row["worker"], row["attempts"]) == ("dead", "r1", "w1", 1)
    assert row["note"] == "failed in w1: ValueError: no"
    assert row["late"] >= 1
    assert row["claimed_at"].endswith("Z")


def test_off_a_terminal_a_row_is_one_line_and_nothing_is_cut(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    name = "a-very-long-name-" * 10
    known(stage, name)
    slip = stage.claimed(stage.job(name))
    result = slotqueue("slots", "--redis", redis_url, env={"COLUMNS": "40"})
    header, row = result.stdout.splitlines()
    assert header.split()[:2] == ["slot", "state"]
    assert row.startswith(f"{slip.key}  claimed")


@pytest.mark.parametrize(
    "state", [SlotState.QUEUED, SlotState.RUNNING, SlotState.DEAD, SlotState.LOST, SlotState.DONE, SlotState.SKIPPED]
)
def test_a_state_narrows_the_list(slotqueue: Slotqueue, stage: Stage, redis_url: str, state: SlotState) -> None:
    known(stage, "rollup")
    wanted, _ = stage.in_state(state)
    stage.in_state(SlotState.MISSED)
    stage.in_state(SlotState.POSTPONED)
    assert listed(slotqueue, redis_url, "--state", state.value) == [wanted.key]


def test_several_states_and_a_job_narrow_together(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup", "other")
    dead, _ = stage.in_state(SlotState.DEAD)
    queued, _ = stage.in_state(SlotState.QUEUED)
    stage.queued(stage.job("other"))
    found = listed(slotqueue, redis_url, "--job", "rollup", "--state", "dead", "--state", "queued")
    assert sorted(found) == sorted([dead.key, queued.key])


def test_a_damaged_record_is_shown_as_damaged(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup")
    one, two, three = stage.claimed(), stage.claimed(), stage.claimed()
    stage.redis.delete(f"{one.key}:record")
    stage.redis.set(f"{one.key}:record", "no hash")
    stage.redis.hset(f"{two.key}:record", "n", "many")
    rows = json.loads(slotqueue("slots", "--redis", redis_url, "--json").stdout)
    notes = {row["key"]: (row["state"], row["note"]) for row in rows}
    assert notes[one.key][0] is None
    assert "WRONGTYPE" in notes[one.key][1]
    assert notes[two.key] == (None, "damaged: n in the record is no number: 'many'")
    assert notes[three.key][0] == "claimed"
    assert "damaged" in slotqueue("slots", "--redis", redis_url).stdout


def test_text_from_redis_cannot_steer_the_terminal(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup")
    run = stage.running(stage.job(on_failure="dead"))
    stage.fail(run, "first\nsecond \x1b[31mred [bold]")
    result = slotqueue("slots", "--redis", redis_url)
    assert len(result.stdout.splitlines()) == 2
    assert r"first\nsecond \x1b[31mred [bold]" in result.stdout


def test_the_namespace_is_a_choice(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup")
    stage.claimed()
    assert listed(slotqueue, redis_url, "--namespace", "elsewhere") == []
    result = slotqueue("slots", env={"SLOTQUEUE_REDIS": redis_url, "SLOTQUEUE_NAMESPACE": "elsewhere"})
    assert (result.exit_code, result.stdout) == (0, "no slot is on record\n")


def test_an_application_tells_where_to_look(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    known(stage, "rollup")
    slip = stage.claimed()
    write_app("", redis_url)
    assert slip.key in slotqueue("slots", "app:slots").stdout
    assert slip.key in slotqueue("slots", env={"SLOTQUEUE_APP": "app:slots"}).stdout
    write_app("", "redis://127.0.0.1:1/0")
    assert slip.key in slotqueue("slots", "app:slots", "--redis", redis_url).stdout
    assert slip.key in slotqueue("slots", "--redis", redis_url, env={"SLOTQUEUE_APP": "nowhere:x"}).stdout


@pytest.mark.parametrize(
    "args, code, problem",
    [
        (["--job", "rolup"], 2, "job 'rolup': no replica has made this job known in the namespace 'ran'; "),
        (["--job", "rolup"], 2, "did you mean 'rollup'?"),
        (["--limit", "0"], 2, "0 is not in the range 1<=x<=1000"),
        (["--limit", "1001"], 2, "1001 is not in the range"),
        (["--state", "finished"], 2, "'finished' is not one of"),
        (["--namespace", "a:b"], 2, "'a:b' cannot begin a key"),
        (["--redis", "http://x"], 2, "http://x is no Redis URL"),
        (["--redis", "redis://:hunter2@127.0.0.1:1/0"], 3, "Redis at redis://:***@127.0.0.1:1/0: "),
    ],
)
def test_wrong_input_is_told_in_one_line(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, args: list[str], code: int, problem: str
) -> None:
    known(stage, "rollup")
    result = slotqueue("slots", "--redis", redis_url, *args)
    assert result.exit_code == code
    assert problem in result.stderr
    assert "hunter2" not in result.stderr
    assert "Traceback" not in result.stderr


def test_slots_whose_records_expired_are_left_out(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup")
    job = stage.job(period=timedelta(hours=1))
    kept, gone = stage.claimed(job), stage.claimed(job)
    stage.redis.delete(gone.key, f"{gone.key}:record")
    assert listed(slotqueue, redis_url) == [kept.key]


def test_gaps_are_listed_among_the_slots_and_as_missed(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known(stage, "rollup")
    now = stage.now()
    gap = Gap(stage.job(), now - 5 * HOUR, now - HOUR, "older than the lookback")
    stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))
    slip, _ = stage.in_state(SlotState.MISSED)
    stage.claimed()
    rows = json.loads(slotqueue("slots", "--redis", redis_url, "--state", "missed", "--json").stdout)
    assert [row["key"] for row in rows] == [slip.key, ""]
    assert (rows[1]["job"], rows[1]["state"], rows[1]["note"]) == ("rollup", "missed", "older than the lookback")
    assert (rows[1]["missed_after"], rows[1]["missed_until"]) == (instant(now - 5 * HOUR), instant(now - HOUR))
    assert len(listed(slotqueue, redis_url)) == 3
    assert listed(slotqueue, redis_url, "--state", "claimed") != [""]
    shown = slotqueue("slots", "--redis", redis_url).stdout
    assert f"rollup: after {instant(now - 5 * HOUR)} up to {instant(now - HOUR)}  missed" in shown
