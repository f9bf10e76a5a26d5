from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Word
from slotqueue.slots import SlotState
from tests.store.stage import DAY, GRACE, HOUR, MINUTE, Stage

OPEN = [state for state in SlotState if state.is_open]
ENQUEUED_AGAIN = [SlotState.CLAIMED, SlotState.QUEUED, SlotState.RUNNING, SlotState.POSTPONED, SlotState.FAILED]


@pytest.mark.parametrize("state", ENQUEUED_AGAIN)
def test_an_open_slot_past_its_deadline_is_claimed_with_the_next_number(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    fence = stage.record(slip.key).get("fence")
    taken = stage.swept(slip.key)
    assert (taken.word, taken.before, taken.slip) == (Word.ENQUEUE, state, replace(slip, n=1))
    record = stage.record(slip.key)
    assert (record["state"], record["n"], record.get("fence")) == ("claimed", "1", fence)
    assert "token" not in record
    assert stage.wait_of(slip.key) == GRACE
    assert stage.past(slip.key)[-1] == f"taken over by r2, was {state}"


@pytest.mark.parametrize("state", OPEN)
def test_a_slot_whose_deadline_has_not_passed_is_left_alone(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    assert stage.take_over(slip.key)[0].word is Word.LATER
    assert stage.snapshot() == before


@pytest.mark.parametrize("state", [state for state in SlotState if not state.is_open])
def test_an_ended_slot_is_left_alone(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    assert stage.take_over(slip.key)[0].word is Word.LATER
    assert stage.snapshot() == before


@pytest.mark.parametrize("state", [state for state in SlotState if not state.is_open])
def test_an_ended_slot_that_strayed_into_the_open_ones_is_taken_out(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    stage.redis.zadd("ran:open", {slip.key: 1})
    assert stage.take_over(slip.key)[0].word is Word.GONE
    assert stage.snapshot() == before


def test_of_two_sweepers_one_takes_the_slot_over(stage: Stage) -> None:
    slip = stage.queued()
    stage.pass_deadline(slip.key)
    words = [stage.take_over(slip.key, replica=replica)[0].word for replica in ("r2", "r3")]
    assert words == [Word.ENQUEUE, Word.LATER]


def test_a_replica_that_vanished_between_claim_and_confirm_is_recovered_ten_seconds_later(stage: Stage) -> None:
    slip = stage.claimed()
    stage.age(GRACE - 2000)
    assert stage.take_over(slip.key)[0].word is Word.LATER
    stage.age(2001)
    again = stage.take_over(slip.key)[0].slip
    assert again is not None
    assert again.key == slip.key


def test_the_state_before_is_that_from_before_the_first_of_several_take_overs(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.RUNNING)
    assert [stage.swept(slip.key).before for _ in range(3)] == ["running"] * 3


def test_the_state_before_is_forgotten_once_the_queue_accepted_the_message(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.RUNNING)
    stage.confirm(stage.enqueued_again(slip.key))
    assert [stage.swept(slip.key).before for _ in range(2)] == ["queued", "queued"]


@pytest.mark.parametrize("state", OPEN)
@pytest.mark.parametrize("task", ["", "arq:do_rollup"])
def test_a_done_marker_ends_any_open_slot_as_done(stage: Stage, state: SlotState, task: str) -> None:
    slip, _ = stage.in_state(state)
    stage.redis.set(f"{slip.key}:done", "w1", ex=60)
    assert stage.swept(slip.key, task=task).word is Word.DONE
    assert (stage.state(slip.key), stage.deadline(slip.key)) == ("done", None)


def test_a_slot_without_a_record_leaves_the_open_ones(stage: Stage) -> None:
    slip = stage.queued()
    stage.redis.delete(f"{slip.key}:record")
    assert stage.swept(slip.key).word is Word.GONE
    assert stage.deadline(slip.key) is None
    assert stage.record(slip.key) == {}


def test_what_is_no_slot_key_leaves_the_open_ones(stage: Stage) -> None:
    stage.redis.zadd("ran:open", {"rubbish": 1, "ran:x": 2})
    assert [taken.word for taken in stage.take_over("rubbish", "ran:x")] == [Word.GONE, Word.GONE]
    assert stage.redis.zcard("ran:open") == 0


@pytest.mark.parametrize("state", OPEN)
def test_a_slot_of_an_unknown_job_is_put_off_by_ten_minutes_and_kept(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    stage.age(2 * HOUR)
    record = stage.record(slip.key)
    for key in (slip.key, f"{slip.key}:record", "ran:open"):
        stage.redis.expire(key, 60)
    assert stage.swept(slip.key, task="").word is Word.UNKNOWN
    assert stage.record(slip.key) == record
    assert stage.wait_of(slip.key) == 10 * MINUTE
    for key in (slip.key, f"{slip.key}:record", "ran:open"):
        assert stage.life_of(key) == DAY + 10 * MINUTE


@pytest.mark.parametrize("waited, put_off", [(0, 1_000), (2 * MINUTE, 12_000), (DAY // 2, 10 * MINUTE)])
def test_a_slot_of_an_unknown_job_is_soon_offered_to_one_who_may_know_it_and_later_ever_less_often(
    stage: Stage, waited: int, put_off: int
) -> None:
    """In a rolling deploy the next sweep may be by a replica of the version that knows the job."""
    slip = stage.claimed()
    stage.age(waited)
    assert stage.swept(slip.key, task="").word is Word.UNKNOWN
    assert put_off <= stage.wait_of(slip.key) <= put_off + 1000
    stage.pass_deadline(slip.key)
    assert stage.swept(slip.key).word is Word.ENQUEUE


def test_a_slot_of_an_unknown_job_ends_as_missed_after_its_retention(stage: Stage) -> None:
    slip = stage.queued()
    for _ in range(24 * 6):
        stage.age(10 * MINUTE)
        if stage.swept(slip.key, task="").word is not Word.UNKNOWN:
            break
    assert stage.record(slip.key)["why"] == "no replica knows its job any more"
    assert (stage.state(slip.key), stage.deadline(slip.key)) == ("missed", None)


def test_a_running_slot_of_an_unknown_job_is_judged_only_after_unbroken_contact(stage: Stage) -> None:
    run = stage.running()
    stage.redis.hset(f"{run.slip.key}:record", mapping={"began": "1000", "claimed": "1000"})
    assert stage.swept(run.slip.key, task="", contact_ms=0).word is not Word.MISSED
    assert stage.heartbeat(run) == Word.YES


@pytest.mark.parametrize("state", [SlotState.CLAIMED, SlotState.QUEUED, SlotState.POSTPONED, SlotState.FAILED])
def test_a_slot_that_waited_out_its_retention_is_missed(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    stage.age(DAY + 2000)
    assert stage.swept(slip.key).word is Word.MISSED
    assert stage.record(slip.key)["why"] == "nothing took it up during its retention"


def test_waiting_is_counted_from_the_claim_across_enqueues(stage: Stage) -> None:
    slip = stage.queued()
    for _ in range(23):
        stage.age(60 * MINUTE)
        slip = stage.enqueued_again(slip.key)
        stage.confirm(slip)
    stage.age(60 * MINUTE)
    assert stage.swept(slip.key).word is Word.MISSED


def test_waiting_starts_anew_with_each_run(stage: Stage) -> None:
    run = stage.running()
    stage.age(2 * DAY // 3)
    stage.heartbeat(run)
    stage.age(2 * DAY // 3)
    slip = stage.enqueued_again(run.slip.key)
    stage.age(2 * DAY // 3)
    assert stage.swept(slip.key).word is Word.ENQUEUE


@pytest.mark.parametrize("state", [SlotState.CLAIMED, SlotState.QUEUED])
def test_a_slot_past_its_expiry_that_never_began_is_skipped(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state, expires=600)
    stage.age(601_000)
    assert stage.swept(slip.key).word is Word.SKIPPED
    assert (stage.state(slip.key), stage.deadline(slip.key)) == ("skipped", None)


def test_a_slot_that_may_still_begin_is_enqueued_again(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.QUEUED, expires=600)
    stage.age(500_000)
    assert stage.swept(slip.key).word is Word.ENQUEUE


@pytest.mark.parametrize("state", [SlotState.RUNNING, SlotState.POSTPONED, SlotState.FAILED])
def test_a_slot_past_its_expiry_that_has_begun_is_enqueued_again(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state, expires=600)
    stage.age(601_000)
    assert stage.swept(slip.key).word is Word.ENQUEUE


def test_a_crashed_run_spends_an_attempt(stage: Stage) -> None:
    run = stage.running(stage.job(max_attempts=3))
    slip = stage.enqueued_again(run.slip.key)
    assert stage.record(slip.key)["spent"] == "1"
    run = stage.began(slip)
    assert run.attempt == 2


def test_the_last_attempt_that_crashed_is_dead(stage: Stage) -> None:
    run = stage.running(stage.job(max_attempts=2))
    run = stage.began(stage.enqueued_again(run.slip.key))
    taken = stage.swept(run.slip.key)
    assert (taken.word, taken.detail) == (Word.DEAD, "attempts spent: its workers fell silent")
    record = stage.record(run.slip.key)
    assert (record["state"], record["spent"]) == ("dead", "2")
    assert stage.deadline(run.slip.key) is None
    assert stage.redis.zrange("ran:dead", 0, -1) == [run.slip.key]


def test_under_skip_a_crashed_run_is_lost(stage: Stage) -> None:
    run = stage.running(stage.job(on_crash="skip"))
    assert stage.swept(run.slip.key).word is Word.LOST
    record = stage.record(run.slip.key)
    assert (record["state"], record["why"]) == ("lost", "its worker w1 fell silent")
    assert stage.deadline(run.slip.key) is None
    assert stage.redis.zrange("ran:dead", 0, -1) == [run.slip.key]


@pytest.mark.parametrize("state", [SlotState.QUEUED, SlotState.POSTPONED, SlotState.FAILED])
def test_under_skip_what_was_not_begun_or_handed_back_cleanly_is_enqueued_again(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state, on_crash="skip", requeue_after=300)
    assert stage.swept(slip.key).word is Word.ENQUEUE


@pytest.mark.parametrize("on_crash", ["complete", "skip"])
def test_a_lease_is_judged_only_after_a_third_of_it_of_unbroken_contact(stage: Stage, on_crash: str) -> None:
    run = stage.running(stage.job(on_crash=on_crash, lease=60))
    record = stage.record(run.slip.key)
    assert stage.swept(run.slip.key, contact_ms=0).word is Word.LATER
    assert stage.wait_of(run.slip.key) == 5000, "it is not asked for the whole third"
    assert stage.swept(run.slip.key, contact_ms=19_999).word is Word.LATER
    assert stage.record(run.slip.key) == record
    assert stage.swept(run.slip.key, contact_ms=20_000).word is not Word.LATER


@pytest.mark.parametrize("state", [SlotState.CLAIMED, SlotState.QUEUED, SlotState.POSTPONED, SlotState.FAILED])
def test_what_holds_no_lease_is_judged_without_contact(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    assert stage.swept(slip.key, contact_ms=0).word is Word.ENQUEUE


def test_under_skip_a_claim_for_an_unguarded_task_is_lost_with_its_replica(stage: Stage) -> None:
    slip = stage.claimed(stage.job(on_crash="skip"))
    assert stage.swept(slip.key).word is Word.LOST
    assert stage.state(slip.key) == "lost"


@pytest.mark.parametrize("on_crash, is_guarded", [("complete", False), ("complete", True), ("skip", True)])
def test_any_other_claim_is_enqueued_again(stage: Stage, on_crash: str, is_guarded: bool) -> None:
    job = stage.job(on_crash=on_crash)
    slip = stage.claimed(job)
    if is_guarded:
        stage.guard(job)
    assert stage.swept(slip.key).word is Word.ENQUEUE


def test_the_task_that_the_sweeping_replica_knows_is_the_one_it_enqueues(stage: Stage) -> None:
    slip = stage.queued()
    taken = stage.swept(slip.key, task="arq:renamed")
    assert taken.slip == replace(slip, n=1, task="arq:renamed")
    assert stage.record(slip.key)["task"] == "arq:renamed"


def test_many_orphans_do_not_crowd_out_others(stage: Stage) -> None:
    job = stage.job()
    orphans = {f"ran:gone:2026-10-02T03:{minute:02}" for minute in range(30)}
    unknown = [stage.queued(job) for _ in range(10)]
    young = [stage.running(job).slip for _ in range(10)]
    damaged = [stage.queued(job) for _ in range(10)]
    wanted = stage.queued(job)
    stage.redis.zadd("ran:open", dict.fromkeys(orphans, 1))
    stage.redis.zadd("ran:open", {slip.key: 2 for slip in unknown + young + damaged})
    for slip in damaged:
        stage.redis.hset(f"{slip.key}:record", "state", "unheard-of")
    stage.redis.zadd("ran:open", {wanted.key: 3})
    seen: list[str] = []
    for _ in range(20):
        keys = stage.run(stage.verbs.overdue(7)).keys
        tasks = ["" if key in {slip.key for slip in unknown} else "arq:do_rollup" for key in keys]
        seen += [
            taken.key
            for taken in stage.run(stage.verbs.take_over(keys, tasks, replica="r2", contact_ms=0))
            if taken.word is Word.ENQUEUE
        ]
        if not keys:
            break
    assert seen == [wanted.key]


def test_a_batch_that_is_asked_again_after_a_lost_reply_takes_nothing_twice(stage: Stage) -> None:
    slips = [stage.queued() for _ in range(5)]
    for slip in slips:
        stage.pass_deadline(slip.key)
    keys = [slip.key for slip in slips]
    assert {taken.word for taken in stage.take_over(*keys)} == {Word.ENQUEUE}
    assert {taken.word for taken in stage.take_over(*keys)} == {Word.LATER}
    assert {stage.record(key)["n"] for key in keys} == {"1"}
