from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Word
from slotqueue.protocols import ANY_FENCE
from slotqueue.slots import SlotState
from tests.store.stage import DAY, MINUTE, Stage


def test_a_postponed_run_is_swept_five_minutes_after_its_retry_time(stage: Stage) -> None:
    run = stage.running()
    assert stage.postpone(run, 2 * MINUTE, "Retry(defer=120)") == Word.YES
    record = stage.record(run.slip.key)
    assert record["state"] == "postponed"
    assert "token" not in record
    assert stage.wait_of(run.slip.key) == 7 * MINUTE
    assert stage.past(run.slip.key) == ["handed back by w1: Retry(defer=120)"]


def test_a_run_whose_message_is_gone_is_swept_at_its_retry_time(stage: Stage) -> None:
    run = stage.running()
    stage.postpone(run, 0, "the replica stops", is_message_gone=True)
    assert stage.state(run.slip.key) == "postponed"
    assert stage.wait_of(run.slip.key) == 0
    again = stage.enqueued_again(run.slip.key)
    assert stage.began(again).attempt == 1


def test_a_retry_countdown_longer_than_the_retention_outlives_it(stage: Stage) -> None:
    run = stage.running()
    stage.postpone(run, 3 * DAY)
    for key in (run.slip.key, f"{run.slip.key}:record"):
        assert stage.life_of(key) == 4 * DAY + 5 * MINUTE
    stage.age(3 * DAY)
    second = stage.began(run.slip, run.fence)
    assert stage.finish(second) == Word.YES


def test_a_countdown_longer_than_the_retention_is_no_waiting(stage: Stage) -> None:
    run = stage.running()
    stage.postpone(run, 3 * DAY)
    stage.age(3 * DAY + 6 * MINUTE)
    assert stage.take_over(run.slip.key)[0].word is Word.ENQUEUE


def test_a_postponed_run_spends_no_attempt(stage: Stage) -> None:
    run = stage.running(stage.job(max_attempts=1))
    for _ in range(5):
        stage.postpone(run)
        run = stage.began(run.slip, ANY_FENCE)
        assert run.attempt == 1
    assert stage.finish(run) == Word.YES


@pytest.mark.parametrize("state", [state for state in SlotState if state is not SlotState.RUNNING])
def test_postpone_changes_nothing_in_any_state_but_running(stage: Stage, state: SlotState) -> None:
    _, run = stage.in_state(state)
    before = stage.snapshot()
    assert stage.postpone(run) == Word.STALE
    assert stage.snapshot() == before


def test_postpone_with_an_old_fence_changes_nothing(stage: Stage) -> None:
    run = stage.running()
    before = stage.snapshot()
    assert stage.postpone(replace(run, fence=run.fence - 1)) == Word.STALE
    assert stage.snapshot() == before


def test_postpone_without_a_record_is_stale(stage: Stage) -> None:
    run = stage.running()
    stage.redis.delete(f"{run.slip.key}:record")
    assert stage.postpone(run) == Word.STALE
    assert stage.record(run.slip.key) == {}


def test_a_delay_below_zero_counts_as_none(stage: Stage) -> None:
    run = stage.running()
    stage.postpone(run, -MINUTE)
    assert stage.wait_of(run.slip.key) == 5 * MINUTE
