"""What an operator has done to slots: they go out by the next sweep, once each, and the record says who wanted it."""

from __future__ import annotations

from typing import Any

import pytest

from slotqueue.answers import Offer, Verdict, Word
from slotqueue.jobs import Job
from slotqueue.policy import Terms
from slotqueue.protocols import Process
from slotqueue.slots import Slot, SlotState
from slotqueue.store.orders import ALL_JOBS, Answer, Orders, Paused, Wanted
from tests.store.stage import DAY, EPOCH_VALUE, GRACE, HOUR, NAMESPACE, Stage, fire_ms, later

BACK = [SlotState.DEAD, SlotState.LOST, SlotState.SKIPPED, SlotState.MISSED]
BY = "alice@web-1"


@pytest.fixture
def orders(stage: Stage) -> Orders:
    return Orders(stage.keys, BY)


def wanted(job: Job, slot: Slot, mark: str = "") -> Wanted:
    fire = fire_ms(slot)
    return Wanted(slot.key + mark, fire, fire - HOUR, job.task_name, job.version, job.terms_text)


def retried(stage: Stage, orders: Orders, key: str) -> Answer:
    return stage.run(orders.retry([key]))[0]


def ordered(stage: Stage, orders: Orders, *slots: Wanted) -> list[Answer]:
    return stage.run(orders.order(slots, "triggered"))


@pytest.mark.parametrize("state", BACK)
def test_a_retried_slot_goes_out_with_the_next_sweep_and_its_attempts_start_anew(
    stage: Stage, orders: Orders, state: SlotState
) -> None:
    slip, _ = stage.in_state(state, expires=HOUR / 1000)
    stage.redis.delete(slip.key)  # the claim has outlived its retention
    spent, why = int(stage.record(slip.key).get("spent", 0)), stage.record(slip.key)["why"]
    assert spent == (1 if state is SlotState.DEAD else 0)
    stage.age(3 * HOUR)
    assert retried(stage, orders, slip.key) == Answer("claimed")
    record = stage.record(slip.key)
    assert record["state"] == "claimed"
    assert not {"spent", "why", "ended", "error"} & record.keys()
    assert stage.redis.get(slip.key) == BY
    assert stage.redis.zscore("ran:dead", slip.key) is None
    (told,) = [text for text in stage.past(slip.key) if text.startswith("retried")]
    assert told.startswith(f"retried by {BY}, was {state}")
    assert why in told
    assert ("after the run by w1" in told) is (state in {SlotState.DEAD, SlotState.LOST})
    assert stage.life_of(f"{slip.key}:record") == DAY

    (taken,) = stage.take_over(slip.key)
    assert (taken.word, taken.before) == (Word.ENQUEUE, state)
    assert taken.slip is not None
    assert taken.slip.n == int(record["n"]) + 1
    assert Terms.parse(taken.slip.terms) == Terms.parse(slip.terms)._replace(expires=0)
    assert stage.past(slip.key)[-1] == "sent out by r2"
    stage.guard(stage.job())
    run = stage.began(taken.slip)
    assert run.attempt == 1
    assert stage.finish(run) == Word.YES
    assert retried(stage, orders, slip.key) == Answer("done")


@pytest.mark.parametrize("state", [state for state in SlotState if state not in BACK])
def test_what_cannot_be_retried_is_left_alone(stage: Stage, orders: Orders, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    before = stage.snapshot()
    word = state.value if state in {SlotState.DONE, SlotState.SENT} else "open"
    assert retried(stage, orders, slip.key).word == word
    assert stage.snapshot() == before


def test_a_slot_with_a_done_marker_is_not_retried_whatever_its_record_says(stage: Stage, orders: Orders) -> None:
    slip, _ = stage.in_state(SlotState.DEAD)
    stage.redis.set(f"{slip.key}:done", "w1")
    before = stage.snapshot()
    assert retried(stage, orders, slip.key) == Answer("done")
    assert stage.snapshot() == before
    stage.redis.delete(f"{slip.key}:record")
    assert retried(stage, orders, slip.key) == Answer("done")


def test_messages_from_before_a_retry_change_nothing(stage: Stage, orders: Orders) -> None:
    slip, run = stage.in_state(SlotState.DEAD)
    retried(stage, orders, slip.key)
    before = stage.snapshot()
    assert stage.confirm(slip) == Word.STALE
    assert stage.reject(slip.key, slip.n) == Word.STALE
    assert stage.fail(run) == Word.STALE
    assert stage.heartbeat(run) == Word.STALE
    assert stage.snapshot() == before


def test_a_retried_slot_of_a_skip_job_is_not_lost_for_want_of_a_guard(stage: Stage, orders: Orders) -> None:
    slip, _ = stage.in_state(SlotState.LOST)
    stage.redis.delete("ran:tasks")
    retried(stage, orders, slip.key)
    assert stage.take_over(slip.key)[0].word is Word.ENQUEUE
    assert stage.swept(slip.key).word is Word.LOST


def test_a_retry_without_a_record_or_with_a_damaged_one_says_so(stage: Stage, orders: Orders) -> None:
    slip, _ = stage.in_state(SlotState.DEAD)
    stage.redis.hset(f"{slip.key}:record", "n", "first")
    answers = stage.run(orders.retry([slip.key, "ran:rollup:2020-01-01T00:00"]))
    assert answers == [Answer("broken", "the record is damaged"), Answer("missing")]


def test_an_ordered_slot_is_claimed_and_goes_out_with_the_next_sweep(stage: Stage, orders: Orders) -> None:
    job = stage.job(expires=60)
    slot = stage.slot(job, ago=2 * HOUR / 1000)
    key = f"{slot.key}~t1a2b"
    assert ordered(stage, orders, wanted(job, slot, "~t1a2b")) == [Answer("claimed")]
    assert stage.redis.get(key) == BY
    record = stage.record(key)
    assert (record["state"], record["by"], record["start"]) == ("claimed", BY, str(fire_ms(slot) - HOUR))
    assert stage.past(key) == [f"triggered by {BY}"]
    assert stage.redis.zscore("ran:rollup:slots", key.removeprefix("ran:rollup:")) == fire_ms(slot)
    assert stage.immortal_keys() <= {f"{NAMESPACE}:epoch", f"{NAMESPACE}:jobs"}
    assert stage.redis.hget("ran:decided", "rollup") is None
    (taken,) = stage.take_over(key)
    assert (taken.word, taken.before) == (Word.ENQUEUE, "ordered")
    assert taken.slip is not None
    stage.guard(job)
    assert stage.confirm(taken.slip) == Word.QUEUED
    assert stage.wait_of(key) > GRACE
    assert stage.finish(stage.began(taken.slip)) == Word.YES
    assert stage.claimed(stage.job(), slot).key == slot.key, "the schedule's own slot is another one"


@pytest.mark.parametrize("state", list(SlotState))
def test_what_was_decided_is_not_ordered_again(stage: Stage, orders: Orders, state: SlotState) -> None:
    slip, _ = stage.in_state(state)
    job, slot = stage.job(), stage.slot(stage.job())
    before = stage.snapshot()
    assert ordered(stage, orders, wanted(job, slot)._replace(key=slip.key)) == [Answer("taken", state)]
    assert stage.snapshot() == before


def test_a_done_marker_or_a_claim_alone_is_a_decision(stage: Stage, orders: Orders) -> None:
    job, one, other = stage.job(), stage.slot(stage.job()), stage.slot(stage.job())
    stage.redis.set(f"{one.key}:done", "w1")
    stage.redis.set(other.key, "r1")
    assert ordered(stage, orders, wanted(job, one), wanted(job, other)) == [Answer("taken", "done"), Answer("taken")]


def test_an_ordered_slot_is_not_claimed_by_a_replica(stage: Stage, orders: Orders) -> None:
    job = stage.job()
    slot = stage.slot(job)
    ordered(stage, orders, wanted(job, slot))
    assert stage.claim(Offer(job, slot)) == [Verdict(Word.TAKEN)]


def test_a_paused_job_and_a_slot_to_come_are_left_alone(stage: Stage, orders: Orders) -> None:
    job = stage.job()
    slip, _ = stage.in_state(SlotState.DEAD)
    early = wanted(job, later(stage.slot(job), 3600))
    assert ordered(stage, orders, early) == [Answer("early")]
    stage.run(orders.pause(["rollup"], 0, ""))
    before = stage.snapshot()
    assert retried(stage, orders, slip.key) == Answer("paused")
    assert ordered(stage, orders, wanted(job, stage.slot(job))) == [Answer("paused")]
    assert stage.snapshot() == before


def test_an_operators_slots_pass_the_gate_of_overlap(stage: Stage, orders: Orders) -> None:
    forbid, hold = stage.job(overlap="forbid"), stage.job("other", overlap="hold", max_held=1)
    out = stage.claimed(forbid)
    before = stage.snapshot()
    (busy,) = ordered(stage, orders, wanted(forbid, stage.slot(forbid)))
    assert busy == Answer("busy", f"{out.key} was claimed")
    assert {key for key in stage.snapshot() if key not in before} <= {"ran:rollup:out"}

    slots = [stage.slot(hold, ago=ago) for ago in (3, 2, 1)]
    answers = ordered(stage, orders, *(wanted(hold, slot) for slot in slots))
    assert [answer.word for answer in answers] == ["claimed", "held", "busy"]
    stage.lose(slots[0].key)
    taken = stage.swept(slots[1].key, task="arq:do_other")
    assert (taken.word, taken.before) == (Word.ENQUEUE, "held")


def test_a_retried_slot_may_be_held(stage: Stage, orders: Orders) -> None:
    slip, _ = stage.in_state(SlotState.DEAD, overlap="hold")
    job = stage.job(overlap="hold")
    out = stage.claimed(job)
    assert retried(stage, orders, slip.key) == Answer("held", f"overlap: {out.key} was claimed")
    assert stage.redis.pttl(f"{slip.key}:record") <= stage.redis.pttl("ran:open"), "or nobody would find it any more"
    stage.lose(out.key)
    assert stage.swept(slip.key).word is Word.ENQUEUE


def test_a_discarded_letter_leaves_the_list_and_says_so(stage: Stage, orders: Orders) -> None:
    slip, _ = stage.in_state(SlotState.DEAD, history=2 * DAY / 1000)
    stage.redis.zadd("ran:dead", {"ran:rollup:2020-01-01T00:00": 1})
    keys = [slip.key, "ran:rollup:2020-01-01T00:00", "ran:rollup:2020-01-02T00:00"]
    words = [answer.word for answer in stage.run(orders.discard(keys))]
    assert words == ["discarded", "discarded", "missing"]
    assert stage.redis.zcard("ran:dead") == 0
    assert (stage.state(slip.key), stage.past(slip.key)[-1]) == ("dead", f"discarded by {BY}")
    assert stage.life_of(f"{slip.key}:record") == 2 * DAY


@pytest.mark.parametrize("state", [state for state in SlotState if state.is_open])
def test_abandoned_slots_are_missed_but_for_those_that_may_be_running(
    stage: Stage, orders: Orders, state: SlotState
) -> None:
    slip, _ = stage.in_state(state)
    (answer,) = stage.run(orders.abandon([slip.key]))
    if state in {SlotState.RUNNING, SlotState.POSTPONED}:
        assert (answer, stage.state(slip.key)) == (Answer(state.value, "w1"), state)
    else:
        assert answer == Answer("missed")
        assert stage.record(slip.key)["why"] == f"the job rollup was forgotten by {BY}"
        assert stage.deadline(slip.key) is None


def test_a_pause_says_until_when_who_and_why_and_ends(stage: Stage, orders: Orders) -> None:
    until = stage.now() + HOUR
    assert stage.run(orders.pause(["rollup", ALL_JOBS], until, "an upgrade, it takes long")) == [-1, -1]
    found = stage.run(orders.pauses())
    assert found.keys() == {"rollup", ALL_JOBS}
    assert found["rollup"] == Paused(until, found["rollup"].since, BY, "an upgrade, it takes long")
    assert abs(found["rollup"].since - stage.now()) < 5000
    assert stage.claim(Offer(stage.job(), stage.slot(stage.job())))[0] == Verdict(Word.SKIPPED, "paused")
    assert stage.run(orders.pause(["rollup"], 0, "")) == [until]
    assert stage.run(orders.pause(["rollup", "other"], -1, "")) == [0, -1]
    assert stage.run(orders.pauses()).keys() == {ALL_JOBS}
    stage.redis.hset("ran:pauses", mapping={"old": "1", "odd": "text", ALL_JOBS: "2"})
    assert stage.run(orders.pauses()) == {}
    stage.run(orders.pause(["rollup"], -1, ""))
    assert stage.redis.hkeys("ran:pauses") == stage.redis.hkeys("ran:pausers") == ["rollup"]


@pytest.mark.parametrize("name", ["rollup", ALL_JOBS])
def test_what_fell_due_in_a_pause_that_is_over_is_skipped_and_not_caught_up(
    stage: Stage, orders: Orders, name: str
) -> None:
    """Case 41: re-enabled on a Friday, a weekly job ran at once; nor may it where all replicas were down meanwhile."""
    job = stage.job()
    stage.redis.hset("ran:pauses", name, "0")
    stage.redis.hset("ran:pausers", name, f"{stage.now() - HOUR} alice@web-1 upgrade")
    stage.run(orders.pause([name], -1, ""))
    assert stage.now() - int(stage.redis.hget("ran:pauses", name)) < 5000
    stage.redis.hset("ran:pauses", name, stage.now() - 60_000)
    before, within, after = (stage.slot(job, ago=ago) for ago in (7200, 1800, 30))
    assert stage.claim(Offer(job, within)) == [Verdict(Word.SKIPPED, "paused")]
    assert stage.claim(Offer(job, before)) == [Verdict(Word.WON)]
    assert stage.claim(Offer(job, after)) == [Verdict(Word.WON)]
    assert stage.run(orders.pause([name], -1, "")) == [-1]
    assert ordered(stage, orders, wanted(job, stage.slot(job, ago=900))) == [Answer("claimed")]


@pytest.mark.parametrize("others", [0, 500])
def test_a_pause_holds_however_many_there_are(stage: Stage, orders: Orders, others: int) -> None:
    stage.run(orders.pause(["rollup", *(f"job-{number}" for number in range(others))], 0, ""))
    job, other = stage.job(), stage.job("other")
    verdicts = stage.claim(Offer(job, stage.slot(job)), Offer(other, stage.slot(other)))
    assert [verdict.word for verdict in verdicts] == [Word.SKIPPED, Word.WON]


def test_a_job_is_forgotten_once_no_replica_has_known_it_for_a_while(stage: Stage, orders: Orders) -> None:
    job = stage.job()

    def registered(**ages: Any) -> None:
        known = [stage.known(each, decided=stage.now()) for each in (job, stage.job("other"))]
        stage.run(stage.verbs.register(Process("r1"), known, epoch=EPOCH_VALUE, is_last=True))

    assert stage.run(orders.forget("rollup")) == Answer("missing", "0")
    registered()
    stage.run(orders.pause(["rollup"], 0, ""))
    stage.redis.rpush("ran:rollup:missed", "1 2 3 r1 late")
    stage.redis.hset("ran:past", "rollup", "v0:1:2")
    before = stage.snapshot()
    assert stage.run(orders.forget("rollup")).word == "known"
    assert stage.snapshot() == before
    entry = str(stage.redis.hget("ran:jobs", "rollup")).split(":")
    entry[2] = str(stage.now() - HOUR)
    stage.redis.hset("ran:jobs", "rollup", ":".join(entry))
    word, ago = stage.run(orders.forget("rollup"))
    assert word == "forgotten"
    assert abs(int(ago) - HOUR) < 5000
    for registry in ("jobs", "decided", "about", "past", "pauses", "pausers"):
        assert not stage.redis.hexists(f"ran:{registry}", "rollup")
    assert not stage.redis.exists("ran:rollup:missed")
    assert stage.redis.hexists("ran:jobs", "other")
