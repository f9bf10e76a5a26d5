from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue import Every
from slotqueue.answers import Gap, Offer, Verdict, Word
from slotqueue.clock import RedisClock
from slotqueue.events import Event, SlotsMissed
from slotqueue.jobs import Job
from slotqueue.planner import Planner
from slotqueue.protocols import Process
from slotqueue.registrar import Registrar
from slotqueue.store import AsyncStore
from tests.store.stage import EPOCH_VALUE, NAMESPACE, Stage, fire_ms


def _miss(stage: Stage, *gaps: Gap, epoch: str = EPOCH_VALUE, replica: str = "r1") -> list[int]:
    return stage.run(stage.verbs.miss(gaps, replica=replica, epoch=epoch))


def _gaps(stage: Stage, job: str = "rollup") -> list[tuple[int, int, str, str]]:
    found = [text.split(" ", 4) for text in stage.redis.lrange(f"ran:{job}:missed", 0, -1)]
    return [(int(after), int(until), by, why) for after, until, _, by, why in found]


def test_a_gap_is_recorded_once_and_decides_its_slots(stage: Stage) -> None:
    job = stage.job()
    assert _miss(stage, Gap(job, 1000, 9000, "too old")) == [1000]
    assert _gaps(stage) == [(1000, 9000, "r1", "too old")]
    assert stage.redis.hget("ran:decided", "rollup") == "9000"
    assert stage.life_of("ran:rollup:missed") == job.terms.history
    assert _miss(stage, Gap(job, 1000, 9000, "too old"), replica="r2") == [0]
    assert _gaps(stage) == [(1000, 9000, "r1", "too old")]


def test_what_was_decided_meanwhile_is_no_gap_and_what_is_left_is_to_be_counted_first(stage: Stage) -> None:
    job = stage.job()
    slot = stage.slot(job, ago=100)
    stage.claim(Offer(job, slot))
    fire = fire_ms(slot)
    assert _miss(stage, Gap(job, fire - 5000, fire, "too old")) == [0]
    assert _miss(stage, Gap(job, fire - 5000, fire + 5000, "too old")) == [fire]
    assert _gaps(stage) == []
    assert stage.redis.hget("ran:decided", "rollup") == str(fire)
    assert _miss(stage, Gap(job, fire, fire + 5000, "too old")) == [fire]
    assert _gaps(stage) == [(fire, fire + 5000, "r1", "too old")]


def test_a_slot_in_a_recorded_gap_is_decided_and_claimed_by_nobody(stage: Stage) -> None:
    """As by a replica that was held up while another one recorded the gap; else it is counted as missed, and runs."""
    job = stage.job()
    slots = [stage.slot(job, ago=ago) for ago in (50, 40, 30, 20, 10)]
    gap = Gap(job, fire_ms(slots[0]), fire_ms(slots[3]), "older than the lookback", slots=3)
    stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))
    offers = [Offer(job, slot) for slot in slots]
    words = [Word.WON, Word.TAKEN, Word.TAKEN, Word.TAKEN, Word.WON]
    assert [verdict.word for verdict in stage.claim(*offers, replica="r2")] == words
    assert not stage.redis.exists(*(slot.key for slot in slots[1:4]))
    assert stage.redis.hget("ran:counts", "claimed") == "2"


def test_a_damaged_list_of_gaps_hides_no_slot(stage: Stage) -> None:
    job = stage.job()
    older, newer = stage.slot(job, ago=20), stage.slot(job, ago=10)
    stage.claim(Offer(job, newer))
    stage.redis.set("ran:rollup:missed", "text")
    assert stage.claim(Offer(job, older)) == [Verdict(Word.WON)]
    stage.redis.delete("ran:rollup:missed")
    stage.redis.rpush("ran:rollup:missed", "rubbish")
    assert stage.claim(Offer(job, stage.slot(job, ago=15))) == [Verdict(Word.WON)]


def test_a_gap_that_continues_the_last_one_lengthens_it(stage: Stage) -> None:
    job = stage.job()
    assert _miss(stage, Gap(job, 1000, 2000, "too old")) == [1000]
    assert _miss(stage, Gap(job, 2000, 3000, "too old"), replica="r2") == [2000]
    assert _gaps(stage) == [(1000, 3000, "r2", "too old")]


def test_a_gap_with_another_reason_or_a_distance_stands_for_itself(stage: Stage) -> None:
    job = stage.job()
    _miss(stage, Gap(job, 1000, 2000, "too old"))
    _miss(stage, Gap(job, 2000, 3000, "coalesced into a newer slot"))
    _miss(stage, Gap(job, 5000, 6000, "coalesced into a newer slot"))
    assert [gap[:2] for gap in _gaps(stage)] == [(1000, 2000), (2000, 3000), (5000, 6000)]


def test_another_epoch_records_nothing(stage: Stage) -> None:
    before = stage.snapshot()
    assert _miss(stage, Gap(stage.job(), 1000, 2000, "too old"), epoch="another") == []
    assert stage.snapshot() == before


def test_the_newest_hundred_gaps_of_a_job_are_kept(stage: Stage) -> None:
    job = stage.job()
    for i in range(105):
        _miss(stage, Gap(job, i * 10_000, i * 10_000 + 1, "too old"))
    assert len(_gaps(stage)) == 100
    assert _gaps(stage)[-1][:2] == (1_040_000, 1_040_001)


def test_a_batch_answers_each_job_in_order(stage: Stage) -> None:
    jobs: list[Job] = [stage.job(name) for name in ("a", "b c", "d")]
    _miss(stage, Gap(jobs[1], 0, 500, "too old"))
    assert _miss(stage, *(Gap(job, 100, 900, "too old") for job in jobs)) == [100, 500, 100]
    assert [_gaps(stage, job.name)[0][:2] for job in jobs] == [(100, 900), (0, 500), (100, 900)]


def test_a_damaged_list_of_gaps_is_replaced_and_stops_no_other_job(stage: Stage) -> None:
    stage.redis.set("ran:a:missed", "text")
    stage.redis.rpush("ran:b:missed", "rubbish")
    stage.redis.hset("ran:decided", "b", "rubbish")
    gaps = [Gap(stage.job(name), 100, 900, "too old") for name in ("a", "b", "d")]
    assert _miss(stage, *gaps) == [100, 100, 100]
    assert _gaps(stage, "a") == _gaps(stage, "d") == [(100, 900, "r1", "too old")]


def test_the_longest_gaps_of_the_farthest_times_keep_every_digit(stage: Stage) -> None:
    after, until = 1_790_899_200_123, 1_790_899_299_999
    assert _miss(stage, Gap(stage.job(), after, until, "too old")) == [after]
    assert _gaps(stage)[0][:2] == (after, until)


@pytest.mark.parametrize("decided, left", [(0, 8), (3, 5), (8, 0)])
async def test_a_replica_counts_what_others_have_left_of_a_gap(
    stage: Stage, redis_url: str, decided: int, left: int
) -> None:
    job, start, events = replace(stage.job(), schedule=Every(seconds=1)), stage.now() // 1000 * 1000, list[Event]()
    if decided:
        assert _miss(stage, Gap(job, start - 8000, start - 8000 + decided * 1000, "theirs")) == [start - 8000]
    store = AsyncStore(redis_url, NAMESPACE)
    registrar = Registrar(store, Planner(NAMESPACE), RedisClock(), Process("r1"), events.append, build=None)
    registrar.epoch = EPOCH_VALUE
    await registrar.miss([Gap(job, start - 8000, start, "ours")])
    await store.close()
    assert int(stage.redis.hget("ran:counts", "missed rollup") or 0) == left
    assert [each.number for each in events if isinstance(each, SlotsMissed)] == [left] * bool(left)
    assert [gap[0] for gap in _gaps(stage) if gap[3] == "ours"] == [start - left * 1000] * bool(left)
