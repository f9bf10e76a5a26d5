from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slotqueue.answers import Offer, Verdict, Word
from slotqueue.slots import SlotState
from tests.store.stage import DAY, EPOCH_VALUE, GRACE, MINUTE, Stage, fire_ms, later


def test_the_first_claim_wins_and_every_other_one_is_told_taken(stage: Stage) -> None:
    job = stage.job()
    offer = Offer(job, stage.slot(job))
    assert stage.claim(offer, replica="r1") == [Verdict(Word.WON)]
    assert [stage.claim(offer, replica=f"r{i}") for i in (2, 3, 4)] == [[Verdict(Word.TAKEN)]] * 3


def test_a_won_slot_has_its_claim_record_deadline_and_place_in_the_listing(stage: Stage) -> None:
    job = stage.job()
    slot = stage.slot(job)
    stage.claim(Offer(job, slot))
    assert stage.redis.get(slot.key) == "r1"
    record = stage.record(slot.key)
    assert abs(int(record.pop("claimed")) - stage.now()) < 5000
    assert record == {
        "state": "claimed",
        "by": "r1",
        "n": "0",
        "fire": str(fire_ms(slot)),
        "start": str(fire_ms(slot) - 3_600_000),
        "task": "arq:do_rollup",
        "version": job.version,
        "terms": job.terms.text,
    }
    assert stage.wait_of(slot.key) == GRACE
    assert stage.redis.pttl("ran:open") >= stage.redis.pttl(f"{slot.key}:record"), "a sweep finds it for as long"
    assert stage.redis.zrange("ran:rollup:slots", 0, -1, withscores=True) == [
        (slot.key.removeprefix("ran:rollup:"), float(fire_ms(slot)))
    ]
    assert stage.redis.hget("ran:decided", "rollup") == str(fire_ms(slot))


def test_to_its_owner_a_claim_is_won_again_while_nothing_has_happened(stage: Stage) -> None:
    job = stage.job()
    offer = Offer(job, stage.slot(job))
    stage.claim(offer)
    before = stage.snapshot()
    assert stage.claim(offer) == [Verdict(Word.WON)]
    assert stage.snapshot() == before


@pytest.mark.parametrize("state", [state for state in SlotState if state.value not in {"claimed", "held"}])
def test_to_its_owner_a_claim_that_has_moved_on_is_taken(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state, on_crash="skip" if state is SlotState.LOST else "complete")
    job = stage.job()
    slot = stage.slot(job)
    offer = Offer(job, replace(slot, key=slip.key))
    before = stage.snapshot()
    assert stage.claim(offer) == [Verdict(Word.TAKEN)]
    assert stage.snapshot() == before


def test_to_its_owner_a_claim_that_was_taken_over_is_taken(stage: Stage) -> None:
    job = stage.job()
    slot = stage.slot(job)
    stage.claimed(job, slot)
    stage.enqueued_again(slot.key, replica="r1")
    assert stage.state(slot.key) == "claimed"
    assert stage.claim(Offer(job, slot), replica="r1") == [Verdict(Word.TAKEN)]


def test_a_slot_whose_time_has_not_come_is_early_and_leaves_nothing(stage: Stage) -> None:
    job = stage.job()
    before = stage.snapshot()
    assert stage.claim(Offer(job, stage.slot(job, ago=-5))) == [Verdict(Word.EARLY)]
    assert stage.snapshot() == before


def test_a_slot_may_be_claimed_ahead_of_its_time_by_so_much(stage: Stage) -> None:
    job = stage.job()
    offer = Offer(job, stage.slot(job, ago=-5))
    assert stage.claim(offer, ahead_ms=3000) == [Verdict(Word.EARLY)]
    assert stage.claim(offer, ahead_ms=6000) == [Verdict(Word.WON)]
    assert stage.wait_of(offer.slot.key) == GRACE


@pytest.mark.parametrize("overlap", ["forbid", "hold"])
def test_where_slots_must_not_overlap_none_is_claimed_ahead(stage: Stage, overlap: str) -> None:
    job = stage.job(overlap=overlap)
    assert stage.claim(Offer(job, stage.slot(job, ago=-5)), ahead_ms=6000) == [Verdict(Word.EARLY)]


def test_an_answer_to_a_claim_has_the_time_to_the_microsecond(stage: Stage) -> None:
    job = stage.job()
    offers = [Offer(job, stage.slot(job)) for _ in range(20)]
    commands = [stage.verbs.claim([offer], replica="r1", epoch=EPOCH_VALUE) for offer in offers]
    times = [stage.run(command).exact_now for command in commands]
    assert any(each % 1 for each in times)
    assert times == sorted(times)
    assert 0 <= stage.now() - int(times[-1]) < 5000


def test_those_who_look_at_others_slots_are_told_how_many_are_claimed(stage: Stage) -> None:
    job = stage.job()
    slots = [stage.slot(job) for _ in range(3)]
    stage.claim(*(Offer(job, slot) for slot in slots[:2]))
    assert stage.run(stage.verbs.taken([slot.key for slot in slots])) == 2
    assert stage.run(stage.verbs.taken([])) == 0


@pytest.mark.parametrize("kind", ["done", "record"])
def test_a_slot_with_a_done_marker_or_a_record_is_not_won_even_without_its_claim(stage: Stage, kind: str) -> None:
    job = stage.job()
    slot = stage.slot(job)
    run = stage.running(job, slot)
    if kind == "done":
        stage.finish(run)
        stage.redis.delete(f"{slot.key}:record")
    stage.redis.delete(slot.key)
    assert stage.claim(Offer(job, slot), replica="r2") == [Verdict(Word.TAKEN)]


def test_another_epoch_claims_nothing(stage: Stage) -> None:
    job = stage.job()
    before = stage.snapshot()
    for epoch in ("another", ""):
        answer = stage.run(stage.verbs.claim([Offer(job, stage.slot(job))], replica="r1", epoch=epoch))
        assert (answer.is_same_epoch, answer.verdicts) == (False, [])
        assert abs(answer.now - stage.now()) < 5000
    assert stage.snapshot() == before


def test_an_empty_redis_claims_nothing_until_somebody_has_registered(stage: Stage) -> None:
    job = stage.job()
    stage.redis.flushall()
    assert not stage.run(
        stage.verbs.claim([Offer(job, stage.slot(job))], replica="r1", epoch=EPOCH_VALUE)
    ).is_same_epoch
    assert stage.all_keys() == []


@pytest.mark.parametrize("paused", ["rollup", "*"])
def test_a_paused_job_is_skipped_and_on_record(stage: Stage, paused: str) -> None:
    stage.pause(paused)
    job = stage.job()
    slot = stage.slot(job)
    assert stage.claim(Offer(job, slot)) == [Verdict(Word.SKIPPED, "paused")]
    record = stage.record(slot.key)
    assert (record["state"], record["why"]) == ("skipped", "paused")
    assert stage.deadline(slot.key) is None
    assert stage.redis.hget("ran:decided", "rollup") == str(fire_ms(slot))
    assert stage.claim(Offer(job, slot)) == [Verdict(Word.TAKEN)]


def test_the_pause_of_another_job_or_one_that_is_over_stops_nothing(stage: Stage) -> None:
    stage.pause("other")
    stage.pause("rollup", until=stage.now() - 1000)
    stage.claimed()


def test_a_pause_until_later_skips(stage: Stage) -> None:
    stage.pause("rollup", until=stage.now() + MINUTE)
    job = stage.job()
    assert stage.claim(Offer(job, stage.slot(job))) == [Verdict(Word.SKIPPED, "paused")]


def test_a_slot_past_its_expiry_is_skipped_and_one_before_it_is_won(stage: Stage) -> None:
    job = stage.job(expires=600)
    late, in_time = stage.slot(job, ago=605), stage.slot(job, ago=590)
    expired = Verdict(Word.SKIPPED, "expired before it was claimed")
    assert stage.claim(Offer(job, late), Offer(job, in_time)) == [expired, Verdict(Word.WON)]
    assert stage.record(late.key)["why"] == "expired before it was claimed"


def test_without_an_expiry_a_late_slot_is_won(stage: Stage) -> None:
    job = stage.job()
    assert stage.claim(Offer(job, stage.slot(job, ago=20 * 3600))) == [Verdict(Word.WON)]


def test_decided_until_never_goes_back(stage: Stage) -> None:
    job = stage.job()
    newer = stage.slot(job, ago=1)
    stage.claim(Offer(job, newer), Offer(job, stage.slot(job, ago=100)))
    assert stage.redis.hget("ran:decided", "rollup") == str(fire_ms(newer))


def test_a_batch_answers_each_slot_in_order(stage: Stage) -> None:
    job = stage.job()
    first = stage.slot(job, ago=50)
    stage.claim(Offer(job, first), replica="r2")
    offers = [Offer(job, slot) for slot in (first, stage.slot(job, ago=-9), stage.slot(job, ago=40))]
    assert [verdict.word for verdict in stage.claim(*offers)] == [Word.TAKEN, Word.EARLY, Word.WON]


def test_a_batch_that_is_asked_again_after_a_lost_reply_is_won_again(stage: Stage) -> None:
    job = stage.job()
    offers = [Offer(job, stage.slot(job)) for _ in range(50)]
    assert stage.claim(*offers) == stage.claim(*offers) == [Verdict(Word.WON)] * 50
    assert stage.redis.zcard("ran:open") == 50


def test_jobs_with_colons_blanks_and_letters_of_any_script_keep_their_slots_apart(stage: Stage) -> None:
    names = ["a:b", "a", "b:2026-10-02T03:00", "täglich 🌙", "ünï", "x:slots", "x"]
    jobs = [stage.job(name) for name in names]
    slots = [stage.slot(job, ago=7) for job in jobs]
    assert {v.word for v in stage.claim(*map(Offer, jobs, slots))} == {Word.WON}
    for name, slot in zip(names, slots, strict=True):
        assert stage.redis.zrange(f"ran:{name}:slots", 0, -1) == [slot.key.removeprefix(f"ran:{name}:")]


@pytest.mark.parametrize("name", ["rollup", "a~b:2026-10-02T03:00~t1", "~"])
@pytest.mark.parametrize("mark", ["", "~t", "~r1.5-5f3a9c", "~t1234567T89012"])
@pytest.mark.parametrize("tail", ["2026-10-02T03:00", "2026-10-02T03:00:30"])
def test_the_listing_and_the_decision_of_a_slot_are_its_jobs(stage: Stage, name: str, mark: str, tail: str) -> None:
    job = stage.job(name)
    key = f"ran:{name}:{tail}{mark}"
    assert stage.claim(Offer(job, replace(stage.slot(job), key=key))) == [Verdict(Word.WON)]
    assert stage.redis.zrange(f"ran:{name}:slots", 0, -1) == [f"{tail}{mark}"]
    assert stage.redis.hkeys("ran:decided") == [name]


def test_the_listing_drops_slots_that_are_older_than_the_history(stage: Stage) -> None:
    job = stage.job(retention=DAY / 1000, history=2 * DAY / 1000)
    stage.redis.zadd("ran:rollup:slots", {"old": stage.now() - 3 * DAY, "young": stage.now() - DAY})
    slot = stage.slot(job)
    stage.claim(Offer(job, slot))
    assert stage.redis.zrange("ran:rollup:slots", 0, -1) == ["young", slot.key.removeprefix("ran:rollup:")]


def test_the_longest_name_and_a_second_that_counts_make_a_slot_of_their_own(stage: Stage) -> None:
    job = stage.job("x" * 200, period=timedelta(seconds=1))
    slot = stage.slot(job, ago=120)
    offers = [Offer(job, later(slot, seconds)) for seconds in range(60)]
    assert stage.claim(*offers) == [Verdict(Word.WON)] * 60
