from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Offer, Verdict, Word
from slotqueue.slots import SlotState
from tests.store.stage import Stage


def test_a_released_slot_keeps_its_claim_and_is_due_again_after_a_second(stage: Stage) -> None:
    job = stage.job()
    slot = stage.slot(job)
    slip = stage.claimed(job, slot)
    assert stage.release(slip, "OOM command not allowed") == Word.RELEASED
    assert stage.redis.get(slip.key) == "r1"
    record = stage.record(slip.key)
    assert (record["state"], record["n"], record["error"]) == ("claimed", "0", "OOM command not allowed")
    assert stage.wait_of(slip.key) == 1000
    assert stage.claim(Offer(job, slot), replica="r2") == [Verdict(Word.TAKEN)]


def test_the_backoff_doubles_with_each_enqueue_up_to_a_minute(stage: Stage) -> None:
    slip = stage.claimed()
    waits = []
    for _ in range(8):
        stage.release(slip)
        waits.append(stage.wait_of(slip.key) // 1000)
        slip = stage.enqueued_again(slip.key)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_released_slot_is_swept_by_any_replica_with_the_next_number(stage: Stage) -> None:
    slip = stage.claimed()
    stage.release(slip)
    assert stage.enqueued_again(slip.key, replica="r9") == replace(slip, n=1)


def test_a_queued_slot_that_is_given_back_is_swept_at_once(stage: Stage) -> None:
    slip = stage.queued(stage.job(on_crash="skip"))
    assert stage.release(slip, "the replica stops") == Word.RELEASED
    assert stage.state(slip.key) == "claimed"
    assert stage.wait_of(slip.key) == 0
    assert stage.past(slip.key) == ["the queue gave it back: the replica stops"]
    assert stage.enqueued_again(slip.key).n == 1


def test_a_queued_slot_is_not_given_back_with_the_number_of_an_earlier_enqueue(stage: Stage) -> None:
    slip = stage.queued()
    again = stage.enqueued_again(slip.key)
    assert stage.confirm(again) == Word.QUEUED
    before = stage.snapshot()
    assert stage.release(slip) == Word.STALE
    assert stage.snapshot() == before


_FROM = {SlotState.CLAIMED, SlotState.QUEUED}


@pytest.mark.parametrize("state", [state for state in SlotState if state not in _FROM])
def test_release_changes_nothing_in_any_state_but_claimed_and_queued(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    assert stage.release(slip) == Word.STALE
    assert stage.snapshot() == before


def test_release_with_the_number_of_an_earlier_enqueue_changes_nothing(stage: Stage) -> None:
    slip = stage.claimed()
    stage.enqueued_again(slip.key)
    before = stage.snapshot()
    assert stage.release(slip) == Word.STALE
    assert stage.snapshot() == before


def test_release_of_a_slot_without_a_record_is_stale(stage: Stage) -> None:
    slip = stage.claimed()
    stage.redis.delete(f"{slip.key}:record")
    assert stage.release(slip) == Word.STALE
    assert stage.redis.exists(f"{slip.key}:record") == 0


def test_a_message_that_was_surely_not_sent_keeps_a_skip_slot_of_an_unguarded_task_alive(stage: Stage) -> None:
    sure, unsure = stage.claimed(stage.job(on_crash="skip")), stage.claimed(stage.job(on_crash="skip"))
    stage.release(sure)
    stage.release(unsure, "connection reset", is_sent_possible=True)
    assert stage.swept(sure.key).word is Word.ENQUEUE
    assert stage.swept(unsure.key).word is Word.LOST


def test_a_later_enqueue_that_is_in_doubt_forgets_that_an_earlier_one_was_surely_not_sent(stage: Stage) -> None:
    slip = stage.claimed(stage.job(on_crash="skip"))
    stage.release(slip)
    stage.enqueued_again(slip.key)
    assert stage.swept(slip.key).word is Word.LOST


def test_the_last_word_about_a_message_says_whether_it_was_surely_not_sent(stage: Stage) -> None:
    slip = stage.claimed(stage.job(on_crash="skip"))
    stage.release(slip)
    stage.release(slip, "connection reset", is_sent_possible=True)
    assert stage.swept(slip.key).word is Word.LOST


def test_a_worker_may_begin_a_released_slot_whose_message_arrived_after_all(stage: Stage) -> None:
    slip = stage.claimed()
    stage.release(slip, is_sent_possible=True)
    stage.began(slip)
    assert stage.state(slip.key) == "running"


def test_a_long_problem_is_cut_at_one_kilobyte(stage: Stage) -> None:
    for problem in ("x" * 5000, "ü" * 5000):
        slip = stage.claimed()
        stage.release(slip, problem)
        assert stage.redis.hstrlen(f"{slip.key}:record", "error") == 1024
        assert all(len(text.encode()) <= 260 for text in stage.past(slip.key))
