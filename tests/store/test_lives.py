"""How long keys live, and how much room a slot takes."""

from __future__ import annotations

from typing import Any

import pytest

from slotqueue.answers import Gap, Offer, Word
from slotqueue.protocols import Process
from slotqueue.slots import SlotState
from tests.store.stage import DAY, GRACE, HOUR, KEYS_WITHOUT_A_TTL, MINUTE, Stage

MOST_BYTES = 900


def test_no_key_lives_for_ever_but_the_documented_ones(stage: Stage) -> None:
    for state in SlotState:
        stage.in_state(state)
    job = stage.job()
    stage.run(stage.verbs.register(Process("r2"), [stage.known(job)], epoch="", is_last=True))
    gap = Gap(stage.job("report"), 1, stage.now(), "too old")
    stage.run(stage.verbs.miss([gap], replica="r1", epoch="the-first-epoch"))
    stage.pause("other")
    kinds = {key.rpartition(":")[2] for key in stage.all_keys()}
    assert {"record", "done", "slots", "missed", "open", "dead", "tasks", "workers", "replicas"} <= kinds
    assert stage.immortal_keys() <= KEYS_WITHOUT_A_TTL


@pytest.mark.parametrize("state", [state for state in SlotState if state.is_open and state is not SlotState.HELD])
def test_claim_record_and_index_of_an_open_slot_outlive_its_deadline_by_the_retention(
    stage: Stage, state: SlotState
) -> None:
    slip, _ = stage.in_state(state)
    expected = stage.wait_of(slip.key) + DAY
    if state is SlotState.CLAIMED:  # up to an hour later it may be confirmed, and then waits in its queue
        expected = HOUR + 5 * MINUTE + DAY
    if state is SlotState.QUEUED:  # what is left of that hour
        expected += HOUR
    assert stage.life_of(slip.key) == stage.life_of(f"{slip.key}:record") == expected
    assert stage.life_of("ran:open") >= stage.wait_of(slip.key) + DAY


def test_a_late_confirm_lengthens_the_lives_that_the_claim_gave(stage: Stage) -> None:
    slip = stage.claimed()
    stage.guard(stage.job())
    stage.age(2 * HOUR)
    assert stage.confirm(slip) == Word.QUEUED
    assert stage.life_of(slip.key) == stage.life_of(f"{slip.key}:record") == 5 * MINUTE + DAY


@pytest.mark.parametrize("state", [state for state in SlotState if state.is_open])
def test_a_slot_that_was_taken_over_lives_on(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    for key in (slip.key, f"{slip.key}:record", "ran:open"):
        stage.redis.expire(key, 30)
    assert stage.swept(slip.key).word is Word.ENQUEUE
    for key in (slip.key, f"{slip.key}:record", "ran:open"):
        assert stage.life_of(key) == DAY + GRACE


@pytest.mark.parametrize("state", [state for state in SlotState if not state.is_open])
def test_the_record_of_an_ended_slot_lives_for_its_history_and_ninety_days_where_it_ended_badly(
    stage: Stage, state: SlotState
) -> None:
    slip, _ = stage.in_state(state, retention=2 * DAY / 1000, history=3 * DAY / 1000)
    assert stage.life_of(slip.key) == 2 * DAY
    is_bad = state in {SlotState.DEAD, SlotState.LOST}
    assert stage.life_of(f"{slip.key}:record") == (90 * DAY if is_bad else 3 * DAY)
    assert bool(stage.redis.zscore("ran:dead", slip.key)) is is_bad
    if is_bad:
        assert stage.life_of("ran:dead") == 90 * DAY


def test_the_short_life_of_one_slot_does_not_shorten_that_of_the_index(stage: Stage) -> None:
    long, short = stage.job("long", retention=9 * DAY / 1000), stage.job("short")
    stage.claimed(long)
    stage.claimed(short)
    assert stage.life_of("ran:open") == 9 * DAY + HOUR + 5 * MINUTE, "as the records that it names"


def test_dead_letters_are_dropped_when_their_time_is_over(stage: Stage) -> None:
    stage.redis.zadd("ran:dead", {"old": stage.now() - 90 * DAY - MINUTE, "young": stage.now() - 89 * DAY})
    slip, _ = stage.in_state(SlotState.DEAD)
    assert stage.redis.zrange("ran:dead", 0, -1) == ["young", slip.key]


def test_a_slot_that_ended_leaves_nothing_behind_when_its_time_is_over(stage: Stage) -> None:
    slip, _ = stage.in_state(SlotState.DONE)
    stage.age(91 * DAY)
    assert stage.all_keys() == ["ran:counts", "ran:decided", "ran:epoch", "ran:jobs"]
    assert stage.state(slip.key) is None


def test_the_past_of_a_slot_is_bounded(stage: Stage) -> None:
    slip = stage.claimed()
    for _ in range(50):
        stage.release(slip, "x" * 3000)
    past = stage.past(slip.key)
    assert len(past) == 20
    assert max(len(text) for text in past) <= 200


@pytest.mark.parametrize("name", ["rollup", "a-job-name-of-exactly-forty-characters-x"])
@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"on_crash": "skip"},
        {"lease": 86400, "retention": 30 * 86400, "expires": 86400, "done_within": 86400, "max_attempts": 1000},
    ],
    ids=["default", "skip", "long"],
)
def test_a_finished_slot_takes_no_more_room_than_promised(stage: Stage, name: str, policy: dict[str, Any]) -> None:
    job = stage.job(name, **policy)
    stage.guard(job)
    count = 200
    for _ in range(count):
        slip = stage.claimed(job)
        stage.confirm(slip)
        assert stage.finish(stage.began(slip)) == Word.YES
    own = (slip.key, f"{slip.key}:record", f"{slip.key}:done")
    used = sum(stage.redis.memory_usage(key) for key in own)
    used += stage.redis.memory_usage(f"ran:{name}:slots", samples=0) / count
    print(f"{name} {policy}: {used:.0f} bytes")
    assert used <= MOST_BYTES


def test_a_listing_of_many_slots_takes_little_room_a_slot(stage: Stage) -> None:
    job = stage.job()
    offers = [Offer(job, stage.slot(job, ago=second)) for second in range(2000)]
    stage.claim(*offers)
    assert stage.redis.memory_usage("ran:rollup:slots", samples=0) / 2000 <= 140
