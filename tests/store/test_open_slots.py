from __future__ import annotations

from slotqueue.messages import Waiting
from slotqueue.slots import SlotState
from tests.store.stage import Stage


def test_overdue_slots_come_the_longest_overdue_first_and_no_more_than_asked_for(stage: Stage) -> None:
    now = stage.now()
    stage.redis.zadd("ran:open", {"c": now - 1, "a": now - 300, "b": now - 20, "not yet": now + 60_000})
    answer = stage.run(stage.verbs.overdue(2))
    assert answer.keys == ["a", "b"]
    assert abs(answer.now - stage.now()) < 5000
    assert stage.run(stage.verbs.overdue(100)).keys == ["a", "b", "c"]
    assert answer.open == 4, "due or not"


def test_nothing_is_overdue_in_an_empty_namespace(stage: Stage) -> None:
    answer = stage.run(stage.verbs.overdue(10))
    assert (answer.keys, answer.open) == ([], 0)


def test_open_keys_walk_by_deadline_until_the_end(stage: Stage) -> None:
    stage.redis.zadd("ran:open", {f"k{i}": i for i in range(5)})
    walk = [stage.run(stage.verbs.open_keys(offset, 2)) for offset in (0, 2, 4, 6)]
    assert walk == [["k0", "k1"], ["k2", "k3"], ["k4"], []]


def test_only_queued_and_postponed_slots_wait_for_a_message(stage: Stage) -> None:
    slips = [stage.in_state(state)[0] for state in SlotState]
    waiting = stage.run(stage.verbs.waiting([slip.key for slip in slips]))
    assert {answer.state for answer in waiting} == {"queued", "postponed"}
    assert {answer.key: answer for answer in waiting} == {
        slip.key: Waiting(slip.key, state, 0, "arq:do_rollup")
        for slip, state in zip(slips, SlotState, strict=True)
        if state in {SlotState.QUEUED, SlotState.POSTPONED}
    }


def test_damaged_absent_and_foreign_keys_do_not_wait(stage: Stage) -> None:
    wrong_type, no_number, sound = (stage.queued() for _ in range(3))
    stage.redis.delete(f"{wrong_type.key}:record")
    stage.redis.set(f"{wrong_type.key}:record", "text")
    stage.redis.hdel(f"{no_number.key}:record", "n")
    keys = [wrong_type.key, no_number.key, "rubbish", "ran:x:2026-10-02T03:00", sound.key]
    assert [answer.key for answer in stage.run(stage.verbs.waiting(keys))] == [sound.key]
