from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Offer, Verdict, Word
from slotqueue.slots import SlotState
from tests.store.stage import DAY, Stage

BEGUN = [
    SlotState.RUNNING,
    SlotState.POSTPONED,
    SlotState.FAILED,
    SlotState.DEAD,
    SlotState.LOST,
]
NEVER_BEGUN = [
    SlotState.CLAIMED,
    SlotState.HELD,
    SlotState.QUEUED,
    SlotState.SENT,
    SlotState.SKIPPED,
    SlotState.MISSED,
]


def test_a_finish_writes_marker_record_and_index_together(stage: Stage) -> None:
    run = stage.running()
    assert stage.finish(run) == Word.YES
    assert stage.redis.get(f"{run.slip.key}:done") == "w1"
    assert stage.life_of(f"{run.slip.key}:done") == stage.life_of(run.slip.key) == DAY
    assert stage.life_of(f"{run.slip.key}:record") == run.terms.history
    record = stage.record(run.slip.key)
    assert record["state"] == "done"
    assert abs(int(record["ended"]) - stage.now()) < 5000
    assert "token" not in record
    assert stage.past(run.slip.key) == []
    assert stage.deadline(run.slip.key) is None


@pytest.mark.parametrize("state", BEGUN)
def test_the_newest_fence_finishes_whatever_became_of_the_slot(stage: Stage, state: SlotState) -> None:
    slip, run = stage.in_state(state)
    assert stage.finish(run) == Word.YES
    record = stage.record(slip.key)
    assert record["state"] == "done"
    assert not {"why", "error"} & record.keys()
    assert stage.deadline(slip.key) is None
    assert stage.redis.zrange("ran:dead", 0, -1) == []


def test_a_zombie_finishes_a_slot_that_was_taken_over_and_not_begun_again(stage: Stage) -> None:
    run = stage.running()
    slip = stage.enqueued_again(run.slip.key)
    assert stage.finish(run) == Word.YES
    assert stage.confirm(slip) == Word.STALE
    assert stage.past(run.slip.key)[-1] == "finished by w1 although it was claimed"


def test_a_finish_said_again_is_yes_and_changes_nothing(stage: Stage) -> None:
    run = stage.running()
    stage.finish(run)
    before = stage.snapshot()
    assert stage.finish(run) == Word.YES
    assert stage.snapshot() == before


@pytest.mark.parametrize("state", NEVER_BEGUN)
def test_a_fence_that_never_was_finishes_nothing(stage: Stage, state: SlotState) -> None:
    _, run = stage.in_state(state)
    before = stage.snapshot()
    assert stage.finish(run) == Word.STALE
    assert stage.snapshot() == before


@pytest.mark.parametrize("state", [*BEGUN, SlotState.DONE])
def test_an_old_fence_finishes_nothing(stage: Stage, state: SlotState) -> None:
    _, run = stage.in_state(state)
    before = stage.snapshot()
    assert stage.finish(replace(run, fence=run.fence - 1)) == Word.STALE
    assert stage.snapshot() == before


def test_a_zombie_whose_slot_runs_elsewhere_finishes_nothing(stage: Stage) -> None:
    zombie = stage.running()
    stage.pass_deadline(zombie.slip.key)
    newest = stage.began(zombie.slip)
    assert stage.finish(zombie) == Word.STALE
    assert stage.state(zombie.slip.key) == "running"
    assert stage.finish(newest) == Word.YES


@pytest.mark.parametrize("on_crash", ["complete", "skip"])
def test_a_lost_record_is_made_anew_and_done(stage: Stage, on_crash: str) -> None:
    job = stage.job(on_crash=on_crash)
    slot = stage.slot(job)
    run = stage.running(job, slot)
    stage.redis.flushall()
    stage.redis.set("ran:epoch", "another")
    assert stage.finish(run) == Word.YES
    record = stage.record(run.slip.key)
    assert (record["state"], record["fence"], record["worker"]) == ("done", str(run.fence), "w1")
    assert stage.redis.get(f"{run.slip.key}:done") == "w1"
    assert stage.deadline(run.slip.key) is None
    assert stage.finish(run) == Word.YES
    assert stage.claim(Offer(job, slot), epoch="another") == [Verdict(Word.TAKEN)]


def test_a_lost_record_with_a_done_marker_is_done_already(stage: Stage) -> None:
    run = stage.running()
    stage.finish(run)
    stage.redis.delete(f"{run.slip.key}:record")
    before = stage.snapshot()
    assert stage.finish(run) == Word.YES
    assert stage.snapshot() == before


def test_without_a_record_and_without_terms_the_finish_is_broken(stage: Stage) -> None:
    run = stage.running()
    stage.redis.flushall()
    assert stage.finish(replace(run, slip=replace(run.slip, terms=""))) == Word.BROKEN
    assert stage.all_keys() == []
