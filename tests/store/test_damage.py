"""What is damaged about one slot is the answer about that slot, and no other slot of the batch notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from slotqueue.answers import Dropped, Offer, Word
from tests.store.stage import Stage

DAMAGES: dict[str, Callable[[Stage, str], object]] = {
    "record is a text": lambda stage, key: _replace(stage, f"{key}:record"),
    "no state": lambda stage, key: stage.redis.hdel(f"{key}:record", "state"),
    "unknown state": lambda stage, key: stage.redis.hset(f"{key}:record", "state", "pondered"),
    "no terms": lambda stage, key: stage.redis.hdel(f"{key}:record", "terms"),
    "short terms": lambda stage, key: stage.redis.hset(f"{key}:record", "terms", "c d a 1 2"),
    "terms that are words": lambda stage, key: stage.redis.hset(f"{key}:record", "terms", "c d a x x x x x x x x"),
    "no fire time": lambda stage, key: stage.redis.hdel(f"{key}:record", "fire"),
    "n is a word": lambda stage, key: stage.redis.hset(f"{key}:record", "n", "first"),
    "fence is a word": lambda stage, key: stage.redis.hset(f"{key}:record", "fence", "high"),
    "spent is a word": lambda stage, key: stage.redis.hset(f"{key}:record", "spent", "all"),
    "claimed is a word": lambda stage, key: stage.redis.hset(f"{key}:record", "claimed", "today"),
    "events is a word": lambda stage, key: stage.redis.hset(f"{key}:record", "events", "many"),
}


def _replace(stage: Stage, key: str) -> None:
    stage.redis.delete(key)
    stage.redis.set(key, "text")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_broken_for_every_verb_and_nothing_is_written(
    stage: Stage, damage: Callable[[Stage, str], object]
) -> None:
    run = stage.running()
    slip = run.slip
    damage(stage, slip.key)
    before = stage.snapshot()
    assert stage.confirm(slip) == Word.BROKEN
    assert stage.release(slip) == Word.BROKEN
    assert stage.heartbeat(run) == Word.BROKEN
    assert stage.finish(run) == Word.BROKEN
    assert stage.postpone(run) == Word.BROKEN
    assert stage.fail(run) == Word.BROKEN
    assert stage.reject(slip.key) == Word.BROKEN
    begun = stage.begin(slip)
    assert isinstance(begun, Dropped)
    assert begun.why is Word.BROKEN
    assert begun.detail
    assert stage.snapshot() == before


UNREAD_BY_CONFIRM = {"no fire time", "fence is a word", "spent is a word"}
"""Where nothing has happened to a slot since its claim, its confirm does not look there."""


@pytest.mark.parametrize("name", DAMAGES)
def test_the_others_of_a_batch_go_on(stage: Stage, name: str) -> None:
    slips = [stage.claimed() for _ in range(3)]
    stage.guard(stage.job())
    DAMAGES[name](stage, slips[1].key)
    words = [verdict.word for verdict in stage.run(stage.verbs.confirm(slips))]
    assert words == [Word.QUEUED, Word.QUEUED if name in UNREAD_BY_CONFIRM else Word.BROKEN, Word.QUEUED]
    runs = [stage.began(slips[0]), stage.began(slips[2])]
    broken = replace(runs[0], slip=slips[1])
    words = [verdict.word for verdict in stage.run(stage.verbs.heartbeat([runs[0], broken, runs[1]]))]
    assert words == [Word.YES, Word.BROKEN, Word.YES]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_sweep_puts_a_damaged_slot_off_and_takes_the_others_over(
    stage: Stage, damage: Callable[[Stage, str], object]
) -> None:
    slips = [stage.queued() for _ in range(3)]
    damage(stage, slips[1].key)
    for slip in slips:
        stage.pass_deadline(slip.key)
    taken = stage.take_over(*(slip.key for slip in slips))
    assert [each.word for each in taken] == [Word.ENQUEUE, Word.BROKEN, Word.ENQUEUE]
    assert taken[1].detail
    assert stage.wait_of(slips[1].key) == 600_000


def test_a_claim_of_another_type_is_broken_and_the_others_are_won(stage: Stage) -> None:
    job = stage.job()
    slots = [stage.slot(job) for _ in range(3)]
    stage.redis.hset(slots[1].key, "a", "b")
    verdicts = stage.claim(*(Offer(job, slot) for slot in slots))
    assert [verdict.word for verdict in verdicts] == [Word.WON, Word.BROKEN, Word.WON]
    assert "WRONGTYPE" in verdicts[1].detail
    assert stage.record(slots[1].key) == {}


def test_a_record_of_another_type_is_broken_when_it_is_claimed(stage: Stage) -> None:
    job = stage.job()
    slots = [stage.slot(job) for _ in range(3)]
    stage.redis.set(f"{slots[1].key}:record", "text")
    words = [verdict.word for verdict in stage.claim(*(Offer(job, slot) for slot in slots))]
    assert words == [Word.WON, Word.BROKEN, Word.WON]
    assert stage.redis.exists(slots[1].key) == 0


def test_a_listing_of_another_type_is_broken_for_its_job_alone(stage: Stage) -> None:
    damaged, sound = stage.job("damaged"), stage.job("sound")
    stage.redis.set("ran:damaged:slots", "text")
    slots = [stage.slot(job) for job in (sound, damaged, sound)]
    offers = [Offer(job, slot) for job, slot in zip((sound, damaged, sound), slots, strict=True)]
    assert [verdict.word for verdict in stage.claim(*offers)] == [Word.WON, Word.BROKEN, Word.WON]
    assert stage.redis.exists(slots[1].key, f"{slots[1].key}:record") == 0


def test_a_lost_record_is_not_made_anew_beside_a_listing_of_another_type(stage: Stage) -> None:
    run, other = stage.running(), stage.running(stage.job("other"))
    stage.redis.flushall()
    stage.redis.set("ran:rollup:slots", "text")
    words = [verdict.word for verdict in stage.run(stage.verbs.heartbeat([run, other]))]
    assert words == [Word.BROKEN, Word.YES]
    assert stage.finish(run) == Word.BROKEN
    begun = stage.begin(run.slip)
    assert isinstance(begun, Dropped)
    assert begun.why is Word.BROKEN
    assert stage.redis.exists(run.slip.key, f"{run.slip.key}:record", f"{run.slip.key}:done") == 0


def test_damaged_terms_of_an_offer_are_broken_and_claim_nothing(stage: Stage) -> None:
    job = stage.job()
    slots = [stage.slot(job) for _ in range(2)]
    command = stage.verbs.claim([Offer(job, slot) for slot in slots], replica="r1", epoch="the-first-epoch")
    args = list(command.args)
    args[8] = "c d"
    words = [verdict.word for verdict in stage.run(replace(command, args=args)).verdicts]
    assert words == [Word.BROKEN, Word.WON]
    assert stage.redis.exists(slots[0].key) == 0
