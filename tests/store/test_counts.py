"""Every slot that was due ends in exactly one count, wherever it ends: claim, confirm, worker, sweep or gap."""

from __future__ import annotations

from collections import Counter

import pytest

from slotqueue.answers import Dropped, Gap, Offer, Run, Word
from slotqueue.messages import Slip
from slotqueue.protocols import Process
from slotqueue.slots import SlotState
from slotqueue.store.orders import Orders, Wanted
from tests.store.stage import DAY, EPOCH_VALUE, HOUR, Stage


def counts(stage: Stage) -> dict[str, int]:
    return {field: int(number) for field, number in stage.redis.hgetall("ran:counts").items()}


def outcomes(stage: Stage) -> Counter[str]:
    found: Counter[str] = Counter()
    for field, number in counts(stage).items():
        state, has_job, _ = field.partition(" ")
        if has_job:
            found[state] += number
    return found


@pytest.mark.parametrize("state", [state for state in SlotState if not state.is_open])
def test_a_slot_that_ended_is_counted_once_under_its_job(stage: Stage, state: SlotState) -> None:
    stage.in_state(state)
    assert outcomes(stage) == {state.value: 1}
    assert counts(stage)[f"{state.value} rollup"] == 1
    assert counts(stage)["claimed"] == 1


@pytest.mark.parametrize("state", [state for state in SlotState if state.is_open and state is not SlotState.HELD])
def test_an_open_slot_is_claimed_and_in_no_count_of_ends(stage: Stage, state: SlotState) -> None:
    stage.in_state(state)
    assert counts(stage) == {"claimed": 1}


def test_the_ends_are_what_was_due_with_one_of_each(stage: Stage) -> None:
    states = [state for state in SlotState if state is not SlotState.HELD]  # a stage holds by losing another slot
    for state in states:
        stage.in_state(state)
    found = counts(stage)
    assert outcomes(stage).total() + stage.redis.zcard("ran:open") == found["claimed"]
    assert stage.redis.zcard("ran:open") == sum(state.is_open for state in states)
    assert found.get("reopened", 0) == 0


def lost_and_missed(stage: Stage, on_crash: str) -> Slip:
    """A message whose slot Redis has forgotten, and a replica has recorded in a gap since."""
    job = stage.job(on_crash=on_crash)
    slip = stage.queued(job)
    stage.redis.flushall()
    stage.run(stage.verbs.register(Process("r1"), [stage.known(job)], epoch=EPOCH_VALUE, is_last=True))
    gap = Gap(job, slip.fire - 5000, slip.fire, "Redis lost its data", slots=1)
    stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))
    return slip


def test_a_message_under_skip_that_outlived_its_record_is_over_where_its_slot_is_missed(stage: Stage) -> None:
    slip = lost_and_missed(stage, "skip")
    before = stage.snapshot()
    assert stage.begin(slip) == Dropped(Word.OVER)
    assert stage.snapshot() == before


def test_one_under_complete_runs_and_its_missed_slot_is_reopened(stage: Stage) -> None:
    slip = lost_and_missed(stage, "complete")
    stage.finish(stage.began(slip))
    assert counts(stage) == {"missed rollup": 1, "reopened": 1, "done rollup": 1}


def test_a_missed_slot_that_an_operator_orders_is_reopened_and_one_with_a_mark_is_its_own(stage: Stage) -> None:
    slip = lost_and_missed(stage, "complete")
    orders = Orders(stage.keys, "alice@web-1")
    for mark, reopened, claimed in (("", 1, 0), ("~alice-1", 1, 1)):
        wanted = Wanted(slip.key + mark, slip.fire, slip.start, slip.task, slip.version, slip.terms)
        assert [answer.word for answer in stage.run(orders.order([wanted], "backfilled"))] == ["claimed"]
        found = counts(stage)
        assert (found.get("reopened", 0), found.get("claimed", 0)) == (reopened, claimed)


def test_losing_asking_again_and_dropped_copies_count_nothing(stage: Stage) -> None:
    job = stage.job()
    slot = stage.slot(job)
    for replica in ("r1", "r1", "r2"):
        stage.claim(Offer(job, slot), replica=replica)
    assert counts(stage) == {"claimed": 1}
    run = stage.running()
    stage.finish(run)
    stage.finish(run)
    stage.begin(run.slip)
    assert outcomes(stage) == {"done": 1}


def test_a_slot_that_is_finished_although_it_was_given_up_was_reopened(stage: Stage) -> None:
    run = stage.running(stage.job(on_crash="skip"))
    stage.swept(run.slip.key)
    stage.finish(run)
    assert outcomes(stage) == {"lost": 1, "done": 1}
    assert counts(stage)["reopened"] == 1


def test_a_slot_that_was_sent_and_begins_after_all_was_reopened(stage: Stage) -> None:
    slip = stage.claimed()
    stage.confirm(slip)
    run = stage.begin(slip)
    assert isinstance(run, Run)
    stage.finish(run)
    assert outcomes(stage) == {"sent": 1, "done": 1}
    assert counts(stage)["reopened"] == 1


def test_a_job_may_be_called_as_it_likes(stage: Stage) -> None:
    stage.finish(stage.running(stage.job("a b:c 2026-10-02T03:00")))
    assert counts(stage)["done a b:c 2026-10-02T03:00"] == 1


def test_what_was_missed_in_a_gap_is_counted_by_number(stage: Stage) -> None:
    job, other = stage.job(), stage.job("other")
    gaps = [Gap(job, 1000, 8000, "too old", slots=7), Gap(other, 1000, 2000, "too old", slots=1)]
    stage.run(stage.verbs.miss(gaps, replica="r1", epoch=EPOCH_VALUE))
    stage.run(stage.verbs.miss(gaps, replica="r2", epoch=EPOCH_VALUE))
    stage.run(stage.verbs.miss([Gap(job, 8000, 11_000, "too old", slots=3)], replica="r2", epoch=EPOCH_VALUE))
    assert counts(stage) == {"missed rollup": 10, "missed other": 1}
    assert stage.life_of("ran:counts") == 365 * DAY


def test_counts_live_for_a_year_and_damage_to_them_harms_no_slot(stage: Stage) -> None:
    stage.in_state(SlotState.DONE)
    assert stage.life_of("ran:counts") == 365 * DAY
    stage.redis.delete("ran:counts")
    stage.redis.set("ran:counts", "no hash")
    gap = Gap(stage.job("other"), 1000, 2000, "too old", slots=1)
    assert stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE)) == [1000]
    run = stage.running()
    assert stage.finish(run).value == "yes"
    assert stage.state(run.slip.key) == "done"


def test_begin_tells_how_long_the_slot_has_waited(stage: Stage) -> None:
    slip = stage.queued()
    stage.age(HOUR)
    run = stage.began(slip)
    assert run.waited_ms is not None
    assert HOUR <= run.waited_ms < HOUR + 60_000


def test_a_gap_is_recorded_whether_it_can_be_counted_or_not(stage: Stage) -> None:
    now = stage.now()
    gap = Gap(stage.job(), now - HOUR, now, "older than the lookback")
    assert stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE)) == [now - HOUR]
    assert counts(stage) == {}
