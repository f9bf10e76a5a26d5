from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slotqueue.answers import Word
from slotqueue.slots import SlotState
from tests.store.stage import DAY, HOUR, MINUTE, Stage


def test_a_confirmed_slot_is_queued_until_requeue_after(stage: Stage) -> None:
    slip = stage.queued()
    record = stage.record(slip.key)
    assert record["state"] == "queued"
    assert abs(int(record["queued"]) - stage.now()) < 5000
    assert stage.wait_of(slip.key) == 5 * MINUTE


def test_the_wait_doubles_with_each_enqueue_up_to_an_hour(stage: Stage) -> None:
    slip = stage.queued()
    waits = []
    for _ in range(6):
        slip = stage.enqueued_again(slip.key)
        assert stage.confirm(slip) == Word.QUEUED
        waits.append(stage.wait_of(slip.key) // MINUTE)
    assert waits == [10, 20, 40, 60, 60, 60]


def test_the_wait_doubles_up_to_the_period_where_that_is_longer(stage: Stage) -> None:
    slip = stage.queued(stage.job(period=timedelta(hours=3), requeue_after=3600))
    assert stage.wait_of(slip.key) == HOUR
    waits = []
    for _ in range(3):
        slip = stage.enqueued_again(slip.key)
        stage.confirm(slip)
        waits.append(stage.wait_of(slip.key) // MINUTE)
    assert waits == [120, 180, 180]


def test_a_requeue_after_beyond_the_hour_is_kept(stage: Stage) -> None:
    slip = stage.queued(stage.job(requeue_after=7200))
    assert stage.wait_of(slip.key) == 2 * HOUR


def test_a_slot_that_is_never_enqueued_again_waits_out_its_retention(stage: Stage) -> None:
    slip = stage.queued(stage.job(on_crash="skip"))
    assert stage.wait_of(slip.key) == DAY


def test_a_slot_whose_task_no_guarded_worker_knows_is_sent_and_ended(stage: Stage) -> None:
    slip = stage.claimed()
    assert stage.confirm(slip) == Word.SENT
    assert stage.state(slip.key) == "sent"
    assert stage.deadline(slip.key) is None
    assert stage.redis.zcard("ran:dead") == 0


def test_another_guarded_task_does_not_guard_this_one(stage: Stage) -> None:
    stage.guard(stage.job("other"))
    assert stage.confirm(stage.claimed()) == Word.SENT


def test_a_task_counts_as_guarded_for_ninety_days_after_the_last_such_worker(stage: Stage) -> None:
    first, second = stage.claimed(), stage.claimed()
    stage.guard(stage.job())
    stage.redis.zadd("ran:tasks", {"arq:do_rollup": stage.now() - 90 * DAY + MINUTE})
    assert stage.confirm(first) == Word.QUEUED
    stage.redis.zadd("ran:tasks", {"arq:do_rollup": stage.now() - 90 * DAY - MINUTE})
    assert stage.confirm(second) == Word.SENT


@pytest.mark.parametrize("state", [state for state in SlotState if state is not SlotState.CLAIMED])
def test_confirm_changes_nothing_in_any_state_but_claimed(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    assert stage.confirm(slip) == Word.STALE
    assert stage.snapshot() == before


@pytest.mark.parametrize("n", [0, 2])
def test_confirm_with_another_number_changes_nothing(stage: Stage, n: int) -> None:
    slip = stage.queued()
    stage.enqueued_again(slip.key)
    before = stage.snapshot()
    assert stage.confirm(replace(slip, n=n)) == Word.STALE
    assert stage.snapshot() == before


def test_confirm_of_a_slot_without_a_record_is_stale(stage: Stage) -> None:
    slip = stage.claimed()
    stage.redis.delete(f"{slip.key}:record")
    assert stage.confirm(slip) == Word.STALE


def test_a_batch_confirms_guarded_and_unguarded_slots_alike(stage: Stage) -> None:
    reporting, silent = stage.job("reporting"), stage.job("silent")
    stage.guard(reporting)
    slips = [stage.claimed(job) for job in (reporting, silent, reporting, silent)]
    stage.began(slips[2])
    words = [verdict.word for verdict in stage.run(stage.verbs.confirm(slips))]
    assert words == [Word.QUEUED, Word.SENT, Word.STALE, Word.SENT]
