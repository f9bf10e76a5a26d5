from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Run, Verdict, Word
from slotqueue.protocols import ANY_FENCE, Command
from slotqueue.slots import SlotState
from tests.store.stage import HOUR, MINUTE, Stage


def test_a_failure_is_dead_with_its_error(stage: Stage) -> None:
    run = stage.running()
    assert stage.fail(run, "ValueError: no such day") == Word.DEAD
    record = stage.record(run.slip.key)
    assert (record["state"], record["error"], record["spent"]) == ("dead", "ValueError: no such day", "1")
    assert record["why"] == "failed in w1"
    assert stage.deadline(run.slip.key) is None
    assert stage.redis.zrange("ran:dead", 0, -1) == [run.slip.key]


def test_under_again_a_failure_is_due_again_after_five_minutes_and_doubling(stage: Stage) -> None:
    run = stage.running(stage.job(on_failure="again", max_attempts=7))
    waits = []
    for attempt in range(1, 7):
        assert run.attempt == attempt
        assert stage.fail(run) == Word.FAILED
        waits.append(stage.wait_of(run.slip.key) // MINUTE)
        run = stage.began(stage.enqueued_again(run.slip.key))
    assert waits == [5, 10, 20, 40, 60, 60]
    assert stage.fail(run) == Word.DEAD
    record = stage.record(run.slip.key)
    assert (record["state"], record["spent"]) == ("dead", "7")
    assert stage.deadline(run.slip.key) is None


def test_the_last_failure_closes_the_slot(stage: Stage) -> None:
    run = stage.running(stage.job(on_failure="again", max_attempts=1))
    assert stage.fail(run) == Word.DEAD
    assert stage.deadline(run.slip.key) is None


@pytest.mark.parametrize("state", [state for state in SlotState if state is not SlotState.RUNNING])
def test_fail_changes_nothing_in_any_state_but_running(stage: Stage, state: SlotState) -> None:
    _, run = stage.in_state(state)
    before = stage.snapshot()
    assert stage.fail(run) == Word.STALE
    assert stage.snapshot() == before


def test_a_crash_and_the_late_failure_of_the_zombie_spend_one_attempt_together(stage: Stage) -> None:
    zombie = stage.running(stage.job(on_failure="again"))
    slip = stage.enqueued_again(zombie.slip.key)
    assert stage.fail(zombie) == Word.STALE
    assert stage.record(slip.key)["spent"] == "1"
    run = stage.began(slip)
    assert stage.fail(zombie) == Word.STALE
    assert run.attempt == 2
    assert stage.fail(run) == Word.FAILED
    assert stage.record(slip.key)["spent"] == "2"


def test_a_failure_said_again_is_stale_and_spends_no_second_attempt(stage: Stage) -> None:
    run = stage.running(stage.job(on_failure="again"))
    stage.fail(run)
    before = stage.snapshot()
    assert stage.fail(run) == Word.STALE
    assert stage.snapshot() == before


def test_a_parent_process_that_knows_the_token_alone_ends_its_own_run(stage: Stage) -> None:
    run = stage.running()
    assert _fail_by_token(stage, run, "somebody else's") == Word.STALE
    assert stage.state(run.slip.key) == "running"
    assert _fail_by_token(stage, run, run.token) == Word.DEAD


def test_a_parent_process_with_the_token_of_an_earlier_run_does_not_end_a_healthy_later_one(stage: Stage) -> None:
    first = stage.running()
    stage.postpone(first)
    second = stage.began(first.slip, ANY_FENCE)
    before = stage.snapshot()
    assert _fail_by_token(stage, first, first.token) == Word.STALE
    assert _fail_by_token(stage, first, "") == Word.STALE
    assert stage.snapshot() == before
    assert stage.finish(second) == Word.YES


def test_a_failure_with_an_old_fence_changes_nothing_even_with_the_right_token(stage: Stage) -> None:
    run = stage.running()
    before = stage.snapshot()
    assert stage.fail(replace(run, fence=run.fence - 1)) == Word.STALE
    assert stage.snapshot() == before


def test_a_failure_within_a_passed_lease_that_nobody_took_counts(stage: Stage) -> None:
    run = stage.running()
    stage.pass_deadline(run.slip.key)
    assert stage.fail(run) == Word.DEAD


def test_fail_without_a_record_is_stale(stage: Stage) -> None:
    run = stage.running()
    stage.redis.delete(f"{run.slip.key}:record")
    assert stage.fail(run) == Word.STALE
    assert stage.record(run.slip.key) == {}


@pytest.mark.parametrize("error", ["x" * 5000, "ü" * 5000])
def test_an_error_is_cut_at_one_kilobyte(stage: Stage, error: str) -> None:
    run = stage.running()
    stage.fail(run, error)
    assert stage.redis.hstrlen(f"{run.slip.key}:record", "error") == 1024


def test_a_failed_slot_waits_no_longer_than_its_period_or_an_hour(stage: Stage) -> None:
    run = stage.running(stage.job(on_failure="again", max_attempts=1000))
    stage.redis.hset(f"{run.slip.key}:record", "spent", 900)
    stage.fail(run)
    assert stage.wait_of(run.slip.key) == HOUR


def _fail_by_token(stage: Stage, run: Run, token: str) -> Word:
    command = stage.verbs.fail(run, "killed")
    asked: Command[Verdict] = replace(command, args=["", token, "killed"])
    return stage.run(asked).word
