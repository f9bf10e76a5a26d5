"""`overlap`: while another slot of the job is out, a slot is skipped or held; what is lost is in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from slotqueue.answers import Dropped, Offer, Takeover, Verdict, Word
from slotqueue.jobs import Job
from slotqueue.messages import Slip
from slotqueue.slots import SlotState
from tests.store.stage import DAY, HOUR, MINUTE, Stage, later

OUT = [state for state in SlotState if state.is_open and state is not SlotState.HELD]
ENDED = [state for state in SlotState if not state.is_open]
LONG: dict[str, Any] = {"on_crash": "complete", "on_failure": "again"}


def job_of(stage: Stage, overlap: str, **policy: Any) -> Job:
    return stage.job(overlap=overlap, **{**LONG, **policy})


def holding(stage: Stage, count: int, **policy: object) -> tuple[Job, Slip, list[Slip]]:
    """A slot that is out and younger ones that are held, the oldest first."""
    job = job_of(stage, "hold", **policy)
    first = stage.slot(job, ago=100)
    out = stage.claimed(job, first)
    return job, out, [stage.held(job, later(first, i + 1)) for i in range(count)]


def sweep(stage: Stage, *slips: Slip) -> list[Takeover]:
    for slip in slips:
        stage.pass_deadline(slip.key)
    return stage.take_over(*(slip.key for slip in slips))


def words(takeovers: list[Takeover]) -> list[Word]:
    return [each.word for each in takeovers]


@pytest.mark.parametrize("state", OUT)
@pytest.mark.parametrize("is_older", [True, False])
def test_another_slot_in_any_state_that_is_out_is_in_the_way(stage: Stage, state: SlotState, is_older: bool) -> None:
    slip, _ = stage.in_state(state, overlap="forbid")
    job = job_of(stage, "forbid")
    slot = stage.slot(job, ago=5000 if is_older else 0)
    why = f"overlap: {slip.key} was {state}"
    assert stage.claim(Offer(job, slot)) == [Verdict(Word.SKIPPED, why)]
    record = stage.record(slot.key)
    assert (record["state"], record["why"], record["behind"]) == ("skipped", why, slip.key)
    assert stage.deadline(slot.key) is None


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize("overlap", ["forbid", "hold"])
def test_a_slot_that_has_ended_is_not_in_the_way(stage: Stage, state: SlotState, overlap: str) -> None:
    stage.in_state(state, overlap=overlap)
    stage.claimed(job_of(stage, overlap))


def test_slots_of_other_jobs_are_not_in_the_way(stage: Stage) -> None:
    stage.claimed(stage.job("other", overlap="forbid"))
    stage.claimed(stage.job("roll", overlap="forbid"))
    stage.claimed(job_of(stage, "forbid"))


def test_of_two_slots_in_one_batch_one_goes_out(stage: Stage) -> None:
    for overlap, word in (("forbid", Word.SKIPPED), ("hold", Word.HELD)):
        job = stage.job(overlap, overlap=overlap)
        verdicts = stage.claim(*(Offer(job, stage.slot(job, ago=ago)) for ago in (3, 2, 1)))
        assert [verdict.word for verdict in verdicts] == [Word.WON, word, word]


def test_a_job_that_may_overlap_leaves_no_sets(stage: Stage) -> None:
    stage.in_state(SlotState.DONE)
    stage.claimed()
    assert not {key for key in stage.all_keys() if key.endswith((":out", ":held"))}


def test_a_held_slot_waits_for_the_next_sweep_and_is_no_enqueue_yet(stage: Stage) -> None:
    _, out, (slip,) = holding(stage, 1)
    record = stage.record(slip.key)
    assert (record["state"], record["behind"], record["n"], record["spared"]) == ("held", out.key, "0", "1")
    assert stage.wait_of(slip.key) == 1000
    assert stage.past(slip.key) == [f"held: {out.key} was claimed"]
    assert stage.life_of(slip.key) >= stage.life_of(f"{slip.key}:record") == DAY + 1000


def test_to_its_owner_a_held_slot_is_held_again_and_to_others_taken(stage: Stage) -> None:
    job, _, (slip,) = holding(stage, 1)
    offer = Offer(job, replace(stage.slot(job), key=slip.key))
    before = stage.snapshot()
    assert stage.claim(offer) == [Verdict(Word.HELD)]
    assert stage.claim(offer, replica="r2") == [Verdict(Word.TAKEN)]
    assert stage.snapshot() == before


def test_a_held_slot_may_not_begin(stage: Stage) -> None:
    _, _, (slip,) = holding(stage, 1)
    before = stage.snapshot()
    assert stage.begin(slip) == Dropped(Word.BUSY)
    assert stage.snapshot() == before


def test_more_than_may_be_held_are_skipped(stage: Stage) -> None:
    job, out, held = holding(stage, 2, max_held=2)
    slot = stage.slot(job)
    why = f"overlap: 2 slots were held already, and {out.key} was claimed"
    assert stage.claim(Offer(job, slot)) == [Verdict(Word.SKIPPED, why)]
    assert stage.state(slot.key) == "skipped"
    stage.lose(held[0].key)
    stage.held(job)


def ends(stage: Stage, state: SlotState) -> tuple[Job, list[Slip]]:
    """Two held slots behind one that ended in this state."""
    said: dict[str, Any] = {
        "on_crash": "skip" if state is SlotState.LOST else "complete",
        "on_failure": "dead",
        "overlap": "hold",
    }
    job = stage.job(**said)
    first = stage.slot(job, ago=100)
    out = stage.claimed(job, first)
    held = [stage.held(job, later(first, i)) for i in (1, 2)]
    match state:
        case SlotState.SENT:
            assert stage.confirm(out) == Word.SENT
        case SlotState.SKIPPED:
            stage.pause()
            assert stage.begin(out) == Dropped(Word.SKIPPED)
            stage.redis.delete("ran:pauses")
        case SlotState.MISSED:
            stage.redis.hset(f"{out.key}:record", "claimed", stage.now() - 2 * DAY)
            assert stage.swept(out.key).word is Word.MISSED
        case _:
            stage.guard(job)
            stage.confirm(out)
            run = stage.began(out)
            match state:
                case SlotState.DONE:
                    stage.finish(run)
                case SlotState.DEAD:
                    stage.fail(run)
                case SlotState.LOST:
                    stage.swept(out.key)
    assert stage.state(out.key) == state
    return job, held


@pytest.mark.parametrize("state", ENDED)
def test_whatever_the_end_the_oldest_held_goes_out_and_only_that_one(stage: Stage, state: SlotState) -> None:
    job, held = ends(stage, state)
    taken = sweep(stage, *reversed(held))
    assert words(taken) == [Word.HELD, Word.ENQUEUE]
    assert taken[1].before == "held"
    assert taken[1].slip == replace(held[0], n=1)
    record = stage.record(held[0].key)
    assert (record["state"], record["n"], record["spared"], record.get("behind")) == ("claimed", "1", "1", None)
    assert stage.past(held[0].key)[-1] == "let go by r2, was held"
    assert stage.record(held[1].key)["behind"] == held[0].key
    stage.held(job)


@pytest.mark.parametrize("state", OUT)
def test_while_another_one_is_out_a_sweep_leaves_the_held_ones_for_the_next(stage: Stage, state: SlotState) -> None:
    slip, _ = stage.in_state(state, overlap="hold")
    job = job_of(stage, "hold")
    older, younger = stage.held(job, stage.slot(job, ago=5000)), stage.held(job, stage.slot(job, ago=0))
    taken = sweep(stage, older, younger)
    assert taken == [Takeover(each.key, Word.HELD, f"{slip.key} is {state}") for each in (older, younger)]
    assert [stage.wait_of(each.key) for each in (older, younger)] == [1000, 1000]


def test_a_new_slot_does_not_overtake_those_that_are_held(stage: Stage) -> None:
    job, out, (slip,) = holding(stage, 1)
    stage.lose(out.key)
    stage.held(job, stage.slot(job, ago=0))
    stage.claimed(job, stage.slot(job, ago=5000))  # older than the held ones: it is its turn
    assert sweep(stage, slip)[0].word is Word.HELD


def test_all_go_out_one_after_the_other_by_fire_time(stage: Stage) -> None:
    job, out, held = holding(stage, 3)
    stage.guard(job)
    order = []
    for _ in range(4):
        stage.finish(stage.began(out))
        taken = sweep(stage, *(slip for slip in reversed(held) if stage.state(slip.key) == "held"))
        following = [each.slip for each in taken if each.slip]
        order += [slip.key for slip in following]
        if following:
            (out,) = following
    assert order == [slip.key for slip in held]


def test_a_held_slot_past_its_expiry_is_skipped_by_the_sweep(stage: Stage) -> None:
    _, _, (slip,) = holding(stage, 1, expires=HOUR / 1000)
    stage.age(2 * HOUR)
    taken = sweep(stage, slip)[0]
    assert (taken.word, taken.detail) == (Word.SKIPPED, "expired before its first begin")
    assert stage.redis.zrange("ran:rollup:held", 0, -1) == []


def test_a_held_slot_that_waits_out_its_retention_is_missed_and_lives_until_then(stage: Stage) -> None:
    job, out, (slip,) = holding(stage, 1)
    stage.guard(job)
    run = stage.began(out)
    for _ in range(5):
        stage.age(5 * HOUR - MINUTE)
        stage.heartbeat(run)
        taken = sweep(stage, slip)
        if taken[0].word is Word.MISSED:
            break
        assert words(taken) == [Word.HELD]
        assert stage.life_of(slip.key) == stage.life_of(f"{slip.key}:record") == DAY + 1000
        assert stage.life_of("ran:rollup:held") >= DAY
    assert stage.now() - int(stage.record(slip.key)["claimed"]) >= DAY
    assert stage.state(slip.key) == "missed"


def test_a_held_slot_of_a_job_that_nobody_knows_is_put_off_and_missed_at_last(stage: Stage) -> None:
    _, out, (slip,) = holding(stage, 1)
    stage.lose(out.key)
    assert stage.swept(slip.key, task="").word is Word.UNKNOWN
    assert stage.wait_of(slip.key) == 1000
    stage.redis.hset(f"{slip.key}:record", "claimed", stage.now() - 2 * DAY)
    assert stage.swept(slip.key, task="").word is Word.MISSED


@pytest.mark.parametrize("overlap", ["forbid", "hold"])
def test_sets_that_are_lost_are_made_anew_from_the_records(stage: Stage, overlap: str) -> None:
    job = job_of(stage, overlap, max_held=1)
    out = stage.running(job)
    if overlap == "hold":
        stage.held(job)
    stage.redis.delete("ran:rollup:out", "ran:rollup:held")
    (verdict,) = stage.claim(Offer(job, stage.slot(job)))
    assert verdict.word is Word.SKIPPED
    assert out.slip.key in verdict.detail


def test_a_set_that_was_begun_again_by_one_of_its_slots_is_made_whole(stage: Stage) -> None:
    job = job_of(stage, "hold", max_held=1)
    out = stage.running(job)
    stage.held(job)
    stage.redis.delete("ran:rollup:out", "ran:rollup:held")
    stage.heartbeat(out)
    assert stage.redis.exists("ran:rollup:out")
    assert stage.claim(Offer(job, stage.slot(job)))[0].word is Word.SKIPPED, "as many are held as may be"


def test_a_policy_that_forbids_sees_the_slots_from_before_it(stage: Stage) -> None:
    run = stage.running()
    assert stage.claim(Offer(job_of(stage, "forbid"), stage.slot(stage.job())))[0].word is Word.SKIPPED
    stage.finish(run)
    stage.claimed(job_of(stage, "forbid"))


def test_a_heartbeat_puts_a_lost_slot_back_into_its_set(stage: Stage) -> None:
    run = stage.running(job_of(stage, "forbid"))
    stage.redis.flushall()
    stage.redis.set("ran:epoch", "the-first-epoch")
    assert stage.heartbeat(run) == Word.YES
    assert stage.claim(Offer(job_of(stage, "forbid"), stage.slot(stage.job())))[0].word is Word.SKIPPED


DAMAGES: dict[str, Callable[[Stage, str], object]] = {
    "gone": lambda stage, key: stage.redis.delete(f"{key}:record"),
    "not among the open ones": lambda stage, key: stage.redis.zrem("ran:open", key),
    "a text": lambda stage, key: stage.redis.delete(f"{key}:record") and stage.redis.set(f"{key}:record", "text"),
    "damaged": lambda stage, key: stage.redis.hset(f"{key}:record", "n", "first"),
    "unknown state": lambda stage, key: stage.redis.hset(f"{key}:record", "state", "pondered"),
    "ended": lambda stage, key: stage.redis.hset(f"{key}:record", "state", "done"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_lost_or_damaged_is_in_nobodys_way(stage: Stage, damage: Callable[[Stage, str], object]) -> None:
    job, out, held = holding(stage, 2, max_held=2)
    damage(stage, out.key)
    damage(stage, held[0].key)
    assert sweep(stage, held[1])[0].word is Word.ENQUEUE
    assert set(stage.redis.zrange("ran:rollup:out", 0, -1)) == {"", held[1].key.removeprefix("ran:rollup:")}
    stage.held(job)


@pytest.mark.parametrize("word", ["out", "held", "slots"])
def test_a_set_of_another_type_stops_no_batch(stage: Stage, word: str) -> None:
    job, other = job_of(stage, "hold", max_held=1), stage.job("other")
    slips = [stage.claimed(job), stage.claimed(other)]
    held = stage.held(job)
    stage.guard(job)
    stage.guard(other)
    stage.redis.delete(f"ran:rollup:{word}")
    stage.redis.set(f"ran:rollup:{word}", "text")
    assert [verdict.word for verdict in stage.run(stage.verbs.confirm(slips))] == [Word.QUEUED, Word.QUEUED]
    assert sweep(stage, held)[0].word is Word.HELD
    verdicts = stage.claim(Offer(job, stage.slot(job)), Offer(other, stage.slot(other)))
    first = Word.BROKEN if word == "slots" else Word.SKIPPED
    assert [verdict.word for verdict in verdicts] == [first, Word.WON]
    assert stage.finish(stage.began(slips[0])) == Word.YES
    assert sweep(stage, held)[0].word is Word.ENQUEUE


def test_the_sets_live_as_long_as_what_is_in_them(stage: Stage) -> None:
    _, out, _ = holding(stage, 1)
    assert stage.life_of("ran:rollup:out") >= stage.life_of(out.key)
    assert stage.life_of("ran:rollup:held") >= DAY
