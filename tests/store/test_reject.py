from __future__ import annotations

import pytest

from slotqueue.answers import Word
from slotqueue.slots import SlotState
from tests.store.stage import MINUTE, Stage

REJECTED_FROM = [SlotState.CLAIMED, SlotState.QUEUED, SlotState.POSTPONED]


@pytest.mark.parametrize("state", REJECTED_FROM)
def test_a_rejected_message_spends_an_attempt_and_is_due_again(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    assert stage.reject(slip.key, slip.n, "unknown function") == Word.FAILED
    record = stage.record(slip.key)
    assert (record["state"], record["spent"], record["error"]) == ("failed", "1", "unknown function")
    assert stage.wait_of(slip.key) == 5 * MINUTE


@pytest.mark.parametrize("state", REJECTED_FROM)
@pytest.mark.parametrize("policy", [{"on_failure": "dead"}, {"on_failure": "again", "max_attempts": 1}])
def test_a_rejected_message_without_another_attempt_is_dead(
    stage: Stage, state: SlotState, policy: dict[str, object]
) -> None:
    slip, _ = stage.in_state(state, **policy)
    assert stage.reject(slip.key, slip.n, "revoked") == Word.DEAD
    assert (stage.state(slip.key), stage.deadline(slip.key)) == ("dead", None)
    assert stage.redis.zrange("ran:dead", 0, -1) == [slip.key]


@pytest.mark.parametrize("state", [state for state in SlotState if state not in REJECTED_FROM])
def test_reject_changes_nothing_in_any_other_state(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    assert stage.reject(slip.key, slip.n) == Word.STALE
    assert stage.snapshot() == before


def test_reject_of_an_earlier_enqueue_changes_nothing(stage: Stage) -> None:
    slip = stage.queued()
    again = stage.enqueued_again(slip.key)
    before = stage.snapshot()
    assert stage.reject(slip.key, slip.n) == Word.STALE
    assert stage.snapshot() == before
    assert stage.reject(slip.key, again.n) == Word.DEAD


def test_reject_said_again_is_stale(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.QUEUED)
    stage.reject(slip.key)
    before = stage.snapshot()
    assert stage.reject(slip.key) == Word.STALE
    assert stage.snapshot() == before


def test_reject_without_a_record_is_stale(stage: Stage) -> None:
    slip = stage.queued()
    stage.redis.delete(f"{slip.key}:record")
    assert stage.reject(slip.key) == Word.STALE
    assert stage.record(slip.key) == {}
