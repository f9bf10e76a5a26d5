from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Dropped, Run, Word
from slotqueue.slots import SlotState
from tests.store.stage import DAY, MINUTE, Stage


def test_a_heartbeat_renews_the_lease(stage: Stage) -> None:
    run = stage.running()
    stage.redis.zadd("ran:open", {run.slip.key: stage.now() + 20_000})
    assert stage.heartbeat(run) == Word.YES
    assert stage.wait_of(run.slip.key) == MINUTE


def test_a_heartbeat_renews_a_lease_that_had_passed_and_nobody_took(stage: Stage) -> None:
    run = stage.running()
    stage.pass_deadline(run.slip.key)
    assert stage.heartbeat(run) == Word.YES
    assert stage.wait_of(run.slip.key) == MINUTE
    assert stage.record(run.slip.key).get("spent") is None


def test_a_heartbeat_keeps_claim_and_record_alive_for_the_retention_behind_the_lease(stage: Stage) -> None:
    run = stage.running()
    for key in (run.slip.key, f"{run.slip.key}:record"):
        stage.redis.expire(key, 30)
    stage.heartbeat(run)
    assert stage.life_of(run.slip.key) == stage.life_of(f"{run.slip.key}:record") == DAY + MINUTE


@pytest.mark.parametrize("state", [state for state in SlotState if state is not SlotState.RUNNING])
def test_a_heartbeat_changes_nothing_in_any_state_but_running(stage: Stage, state: SlotState) -> None:
    _, run = stage.in_state(state)
    before = stage.snapshot()
    assert stage.heartbeat(run) == Word.STALE
    assert stage.snapshot() == before


@pytest.mark.parametrize("step", [-1, 1])
def test_a_heartbeat_with_another_fence_changes_nothing(stage: Stage, step: int) -> None:
    run = stage.running()
    before = stage.snapshot()
    assert stage.heartbeat(replace(run, fence=run.fence + step)) == Word.STALE
    assert stage.snapshot() == before


def test_a_lost_record_is_made_anew_with_lease_fence_and_token(stage: Stage) -> None:
    run = stage.running()
    stage.redis.flushall()
    assert stage.heartbeat(run) == Word.YES
    record = stage.record(run.slip.key)
    assert (record["state"], record["fence"], record["token"]) == ("running", str(run.fence), run.token)
    assert stage.wait_of(run.slip.key) == MINUTE
    assert stage.begin(run.slip) == Dropped(Word.BUSY)
    assert stage.begin(run.slip, token=run.token) == run
    assert stage.finish(run) == Word.YES


def test_a_lost_record_is_not_made_anew_behind_a_done_marker(stage: Stage) -> None:
    run = stage.running()
    stage.redis.delete(f"{run.slip.key}:record")
    stage.redis.set(f"{run.slip.key}:done", "w2", ex=60)
    assert stage.heartbeat(run) == Word.STALE
    assert stage.record(run.slip.key) == {}


def test_a_lost_record_is_not_made_anew_once_its_done_marker_may_have_come_and_gone(stage: Stage) -> None:
    run = stage.running()
    stage.redis.flushall()
    old = replace(run.slip, fire=run.slip.fire - run.terms.retention - MINUTE)
    assert stage.heartbeat(replace(run, slip=old)) == Word.STALE
    assert stage.all_keys() == []


def test_a_lost_record_is_not_made_anew_without_terms(stage: Stage) -> None:
    run = stage.running()
    stage.redis.flushall()
    assert stage.heartbeat(replace(run, slip=replace(run.slip, terms="none"))) == Word.STALE
    assert stage.all_keys() == []


def test_a_heartbeat_with_an_old_fence_after_another_worker_began_the_lost_slot_is_stale(stage: Stage) -> None:
    old = stage.running()
    stage.redis.flushall()
    stage.pass_instant(old.fence)
    new = stage.began(old.slip)
    assert stage.heartbeat(old) == Word.STALE
    assert stage.heartbeat(new) == Word.YES


def test_a_batch_answers_each_run_in_order(stage: Stage) -> None:
    runs = [stage.running() for _ in range(4)]
    stage.finish(runs[1])
    stage.redis.delete(f"{runs[2].slip.key}:record")
    stale: Run = replace(runs[3], fence=1)
    words = [verdict.word for verdict in stage.run(stage.verbs.heartbeat([*runs[:3], stale]))]
    assert words == [Word.YES, Word.STALE, Word.YES, Word.STALE]
