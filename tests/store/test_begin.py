from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Dropped, Offer, Run, Verdict, Word
from slotqueue.messages import Slip
from slotqueue.planner import Planner
from slotqueue.protocols import ANY_FENCE
from slotqueue.slots import SlotState
from tests.store.stage import DAY, MINUTE, NAMESPACE, Stage

CLEAN = [SlotState.CLAIMED, SlotState.QUEUED, SlotState.SENT]
MOST_AHEAD_MS = Planner(NAMESPACE, ahead_ms=20).most_ahead_ms
OVER = [SlotState.DEAD, SlotState.LOST, SlotState.SKIPPED, SlotState.MISSED]


@pytest.mark.parametrize("state", CLEAN)
@pytest.mark.parametrize("from_fence", ["", ANY_FENCE])
def test_a_slot_that_waits_for_its_worker_runs(stage: Stage, state: SlotState, from_fence: str) -> None:
    slip, _ = stage.in_state(state)
    run = stage.began(slip, from_fence)
    record = stage.record(slip.key)
    assert (record["state"], record["token"], record["worker"]) == ("running", run.token, "w1")
    assert record["fence"] == str(run.fence)
    assert abs(run.fence - stage.now()) < 5000
    assert (run.slip, run.attempt) == (slip, 1)
    assert stage.wait_of(slip.key) == MINUTE
    assert not {"ended", "why", "waits", "unsent", "before"} & record.keys()


def test_a_message_that_is_faster_than_its_confirm_runs_and_the_confirm_is_stale(stage: Stage) -> None:
    slip = stage.claimed()
    run = stage.began(slip)
    assert stage.confirm(slip) == Word.STALE
    assert stage.finish(run) == Word.YES


def claimed_ahead(stage: Stage, seconds: float) -> Slip:
    job = stage.job()
    slot = stage.slot(job, ago=-seconds)
    assert stage.claim(Offer(job, slot), ahead_ms=DAY) == [Verdict(Word.WON)]
    return stage.slip(job, slot)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_message_that_waits_in_the_queue_for_its_time_does_not_run_before_it(stage: Stage, is_lost: bool) -> None:
    slip = claimed_ahead(stage, MOST_AHEAD_MS / 1000)
    if is_lost:
        stage.lose(slip.key)
    before = stage.snapshot()
    answer = stage.begin(slip)
    assert isinstance(answer, Dropped)
    assert answer.why is Word.EARLY
    assert 0 < int(answer.detail) <= MOST_AHEAD_MS
    assert stage.snapshot() == before
    stage.pass_instant(slip.fire - 1)
    assert stage.began(slip).waited_ms == (0 if is_lost else pytest.approx(0, abs=500)), "from its time, not its claim"


def test_a_slot_that_was_due_before_rediss_clock_was_set_back_is_not_kept_waiting(stage: Stage) -> None:
    stage.began(claimed_ahead(stage, 60))


def test_a_slot_with_a_done_marker_is_done(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.DONE)
    before = stage.snapshot()
    for from_fence in ("", ANY_FENCE, int(stage.record(slip.key)["fence"])):
        assert stage.begin(slip, from_fence=from_fence) == Dropped(Word.DONE)
    assert stage.snapshot() == before


@pytest.mark.parametrize("state", [state for state in SlotState if state is not SlotState.DONE])
def test_a_done_marker_stops_a_slot_in_any_state(stage: Stage, state: SlotState) -> None:
    slip, run = stage.in_state(state)
    stage.redis.set(f"{slip.key}:done", "w1", ex=60)
    assert stage.begin(slip, from_fence=ANY_FENCE, token=run.token) == Dropped(Word.DONE)


def test_a_duplicate_that_outlives_the_done_marker_is_still_done(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.DONE)
    stage.redis.delete(f"{slip.key}:done", slip.key)
    assert stage.begin(slip, from_fence=ANY_FENCE) == Dropped(Word.DONE)


def test_a_duplicate_that_outlives_the_record_too_is_expired(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.DONE)
    old = replace(slip, fire=slip.fire - DAY - MINUTE)
    stage.redis.delete(f"{slip.key}:done", slip.key, f"{slip.key}:record")
    assert stage.begin(old, from_fence=ANY_FENCE) == Dropped(Word.EXPIRED)
    assert stage.record(slip.key) == {}


@pytest.mark.parametrize("state", OVER)
def test_an_ended_slot_is_over_whatever_the_message_says(stage: Stage, state: SlotState) -> None:
    slip, run = stage.in_state(state)
    before = stage.snapshot()
    for from_fence in ("", ANY_FENCE, run.fence):
        assert stage.begin(slip, token=run.token, from_fence=from_fence) == Dropped(Word.OVER)
    assert stage.snapshot() == before


@pytest.mark.parametrize("is_past", [False, True])
def test_a_begin_whose_reply_was_lost_finds_its_own_lease_and_has_all_of_it(stage: Stage, is_past: bool) -> None:
    """The worker counts its lease from the question that was answered: no sweep may take the slot before that."""
    slip = stage.queued()
    first = stage.begin(slip, token="t")
    before = stage.record(slip.key)
    stage.redis.zincrby("ran:open", -2 * MINUTE if is_past else -MINUTE // 2, slip.key)
    assert stage.begin(slip, token="t") == first
    assert stage.record(slip.key) == before
    assert stage.wait_of(slip.key) == MINUTE
    assert stage.life_of(slip.key) >= MINUTE


@pytest.mark.parametrize("from_fence", ["", ANY_FENCE, 1])
def test_while_a_lease_lasts_a_second_message_is_busy(stage: Stage, from_fence: str | int) -> None:
    run = stage.running()
    before = stage.snapshot()
    assert stage.begin(run.slip, from_fence=from_fence) == Dropped(Word.BUSY)
    assert stage.snapshot() == before


@pytest.mark.parametrize("on_crash", ["complete", "skip"])
def test_the_message_that_the_run_itself_sent_runs_before_its_postpone_arrives(stage: Stage, on_crash: str) -> None:
    first = stage.running(stage.job(on_crash=on_crash))
    second = stage.began(first.slip, first.fence)
    assert second.fence > first.fence
    assert second.attempt == 1
    assert stage.postpone(first) == stage.finish(first) == stage.heartbeat(first) == Word.STALE
    assert stage.finish(second) == Word.YES


def test_under_complete_a_passed_lease_spends_an_attempt_and_runs(stage: Stage) -> None:
    first = stage.running()
    stage.pass_deadline(first.slip.key)
    second = stage.began(first.slip)
    assert second.attempt == 2
    assert second.fence > first.fence
    assert stage.record(first.slip.key)["spent"] == "1"
    assert "fell silent" in stage.past(first.slip.key)[-1]


def test_under_complete_the_last_attempt_that_fell_silent_is_dead(stage: Stage) -> None:
    run = stage.running(stage.job(max_attempts=2))
    stage.pass_deadline(run.slip.key)
    run = stage.began(run.slip)
    stage.pass_deadline(run.slip.key)
    assert stage.begin(run.slip) == Dropped(Word.OVER)
    record = stage.record(run.slip.key)
    assert (record["state"], record["spent"]) == ("dead", "2")
    assert stage.redis.zrange("ran:dead", 0, -1) == [run.slip.key]


@pytest.mark.parametrize("from_fence", ["", ANY_FENCE])
def test_under_skip_a_passed_lease_is_lost(stage: Stage, from_fence: str) -> None:
    run = stage.running(stage.job(on_crash="skip"))
    stage.pass_deadline(run.slip.key)
    assert stage.begin(run.slip, from_fence=from_fence) == Dropped(Word.LOST)
    assert stage.state(run.slip.key) == "lost"
    assert stage.deadline(run.slip.key) is None
    assert stage.redis.zrange("ran:dead", 0, -1) == [run.slip.key]


@pytest.mark.parametrize("state", [SlotState.POSTPONED, SlotState.FAILED])
def test_a_slot_that_was_handed_back_runs_only_for_the_message_that_the_run_sent(
    stage: Stage, state: SlotState
) -> None:
    slip, run = stage.in_state(state)
    before = stage.snapshot()
    assert stage.begin(slip) == stage.begin(slip, from_fence=run.fence - 1) == Dropped(Word.BUSY)
    assert stage.snapshot() == before
    assert stage.began(slip, run.fence).fence > run.fence


@pytest.mark.parametrize("state", [SlotState.POSTPONED, SlotState.FAILED])
def test_a_slot_that_was_handed_back_runs_for_any_message_where_they_do_not_tell(
    stage: Stage, state: SlotState
) -> None:
    slip, run = stage.in_state(state)
    assert stage.began(slip, ANY_FENCE).fence > run.fence


def test_a_held_slot_is_busy(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.HELD)
    assert stage.begin(slip, from_fence=ANY_FENCE) == Dropped(Word.BUSY)
    assert stage.state(slip.key) == "held"


@pytest.mark.parametrize("state", [*CLEAN, SlotState.HELD])
def test_a_paused_job_is_skipped_before_its_first_begin(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    stage.pause()
    assert stage.begin(slip) == Dropped(Word.SKIPPED)
    assert (stage.state(slip.key), stage.record(slip.key)["why"]) == ("skipped", "paused")
    assert stage.deadline(slip.key) is None


@pytest.mark.parametrize("state", [SlotState.POSTPONED, SlotState.FAILED])
def test_a_pause_does_not_stop_what_has_begun(stage: Stage, state: SlotState) -> None:
    slip, run = stage.in_state(state)
    stage.pause()
    stage.began(slip, run.fence)


@pytest.mark.parametrize("state", CLEAN)
def test_a_slot_past_its_expiry_is_skipped_before_its_first_begin(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state, expires=600)
    stage.redis.hset(f"{slip.key}:record", "fire", slip.fire - 601_000)
    assert stage.begin(slip) == Dropped(Word.SKIPPED)
    assert stage.state(slip.key) == "skipped"


@pytest.mark.parametrize("state", [SlotState.POSTPONED, SlotState.FAILED])
def test_an_expiry_does_not_stop_what_has_begun(stage: Stage, state: SlotState) -> None:
    slip, run = stage.in_state(state, expires=600)
    stage.redis.hset(f"{slip.key}:record", "fire", slip.fire - 601_000)
    stage.began(slip, run.fence)


def test_a_slot_that_was_sent_is_open_again_while_a_guarded_worker_runs_it(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.SENT)
    run = stage.began(slip)
    assert stage.wait_of(slip.key) == MINUTE
    assert stage.finish(run) == Word.YES
    assert stage.state(slip.key) == "done"


def test_under_complete_a_lost_record_is_made_anew_from_the_message(stage: Stage) -> None:
    slip = replace(stage.queued(), n=3)
    before = stage.record(slip.key)
    stage.redis.flushall()
    run = stage.began(slip)
    record = stage.record(slip.key)
    assert record["state"] == "running"
    assert record["n"] == "3"
    assert {name: record[name] for name in ("fire", "start", "task", "version", "terms")} == {
        name: before[name] for name in ("fire", "start", "task", "version", "terms")
    }
    assert stage.redis.get(slip.key) == "w1"
    assert stage.redis.zrange("ran:rollup:slots", 0, -1) == [slip.key.removeprefix("ran:rollup:")]
    assert stage.wait_of(slip.key) == MINUTE
    assert stage.finish(run) == Word.YES


def test_under_skip_a_lost_record_is_lost_and_stays_so(stage: Stage) -> None:
    slip = stage.queued(stage.job(on_crash="skip"))
    stage.redis.flushall()
    assert stage.begin(slip) == Dropped(Word.LOST)
    assert stage.begin(slip) == Dropped(Word.OVER)
    assert stage.redis.zrange("ran:dead", 0, -1) == [slip.key]
    assert stage.deadline(slip.key) is None


@pytest.mark.parametrize("on_crash", ["complete", "skip"])
def test_without_a_record_a_message_older_than_the_retention_is_expired(stage: Stage, on_crash: str) -> None:
    slip = stage.queued(stage.job(on_crash=on_crash))
    stage.redis.flushall()
    assert stage.begin(replace(slip, fire=slip.fire - DAY)) == Dropped(Word.EXPIRED)
    assert stage.all_keys() == []


def test_a_message_without_terms_and_without_a_record_is_broken(stage: Stage) -> None:
    slip = stage.queued()
    stage.redis.flushall()
    answer = stage.begin(replace(slip, terms="c d"))
    assert isinstance(answer, Dropped)
    assert answer.why is Word.BROKEN
    assert stage.all_keys() == []


def test_the_fence_grows_across_a_loss_of_data(stage: Stage) -> None:
    first = stage.running()
    stage.redis.flushall()
    stage.pass_instant(first.fence)
    assert stage.began(first.slip).fence > first.fence


def test_the_fence_grows_even_when_the_clock_went_back(stage: Stage) -> None:
    slip, run = stage.in_state(SlotState.POSTPONED)
    stage.redis.hset(f"{slip.key}:record", "fence", run.fence + DAY)
    assert stage.began(slip, ANY_FENCE).fence == run.fence + DAY + 1


def test_the_run_carries_the_terms_under_which_the_slot_was_claimed(stage: Stage) -> None:
    slip = stage.queued()
    other = stage.job(max_attempts=9).terms.text
    run = stage.began(replace(slip, terms=other))
    assert isinstance(run, Run)
    assert run.slip.terms == slip.terms
