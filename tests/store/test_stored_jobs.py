"""The scripts about stored jobs: put, remove, changes and restore, and what claim, begin and take_over make of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slotqueue.answers import Changes, Dropped, Known, Offer, Run, StoredEntry, Verdict, Word, Written
from slotqueue.jobs import Job
from slotqueue.messages import Slip
from slotqueue.protocols import Process
from slotqueue.slots import SlotState
from tests.store.stage import DAY, EPOCH_VALUE, HOUR, Stage


class Shelf:
    """Puts, removes and reads stored jobs."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.verbs = stage.verbs

    def put(self, job: str, text: str = "{}", schedule: str = "v1", expected: int | None = None) -> Written:
        return self.stage.run(self.verbs.put(job, text, schedule, expected=expected))

    def remove(self, job: str, expected: int | None = None) -> Written:
        return self.stage.run(self.verbs.remove(job, expected=expected))

    def changes(self, known: int = 0, *, limit: int = 100, epoch: str = EPOCH_VALUE) -> Changes | None:
        return self.stage.run(self.verbs.changes(known, epoch=epoch, limit=limit))

    def told(self, known: int = 0, limit: int = 100) -> Changes:
        changes = self.changes(known, limit=limit)
        assert changes is not None
        return changes

    def entry(self, job: str) -> StoredEntry:
        return next(each for each in self.told().entries if each.job == job)


@pytest.fixture
def shelf(stage: Stage) -> Shelf:
    return Shelf(stage)


def test_versions_grow_even_within_a_millisecond_and_where_the_clock_went_back(stage: Stage, shelf: Shelf) -> None:
    versions = [shelf.put("a")[1] for _ in range(20)]
    assert sorted(set(versions)) == versions
    assert abs(versions[0] - stage.now()) < 5000
    ahead = stage.now() + DAY
    stage.redis.hset("ran:stored", "", ahead)
    assert shelf.put("a") == (True, ahead + 1)
    assert shelf.remove("a") == (True, ahead + 2)


def test_a_put_counts_only_over_the_version_that_it_names(shelf: Shelf) -> None:
    assert shelf.put("a", expected=5) == (False, 0)
    _, first = shelf.put("a", "one", expected=0)
    assert shelf.put("a", "two", expected=0) == (False, first)
    done, second = shelf.put("a", "two", expected=first)
    assert done
    assert shelf.put("a", "three", expected=first) == (False, second)
    assert shelf.remove("a", expected=first) == (False, second)
    assert shelf.entry("a").text == "two"
    assert shelf.remove("a", expected=second)[0]
    assert shelf.remove("a") == (False, 0)


def test_a_job_owes_nothing_from_before_its_schedule_was_put(stage: Stage, shelf: Shelf) -> None:
    def since_after(text: str, schedule: str) -> int:
        _, version = shelf.put("a", text, schedule)
        stage.pass_instant(version)
        return shelf.entry("a").since

    first = since_after("one", "v1")
    assert abs(first - stage.now()) < 5000
    assert since_after("two", "v1") == first
    second = since_after("three", "v2")
    assert second > first
    shelf.remove("a")
    assert since_after("three", "v2") > second


def test_changes_are_told_once_removals_among_them(shelf: Shelf) -> None:
    assert shelf.told() == Changes(0, 0, 0, is_last=True, entries=[])
    _, first = shelf.put("a")
    shelf.put("b c:d")
    told = shelf.told()
    assert [each.job for each in told.entries] == ["a", "b c:d"]
    assert (told.since, told.stored) == (0, 2)
    assert shelf.told(told.version) == Changes(told.version, told.version, 2, is_last=True, entries=[])
    _, gone = shelf.remove("a")
    later = shelf.told(told.version)
    assert later == Changes(told.version, gone, 1, is_last=True, entries=[StoredEntry("a", 0, 0, "")])
    shelf.put("a")
    assert [(each.job, bool(each.raw)) for each in shelf.told(first).entries] == [
        ("b c:d", True),
        ("a", True),
        ("a", True),
    ], "its removal and its return: both say what is there now"


def test_changes_come_in_pages(shelf: Shelf) -> None:
    for i in range(5):
        shelf.put(f"job-{i}")
    pages, known = list[Changes](), 0
    while not pages or not pages[-1].is_last:
        pages.append(shelf.told(known, limit=2))
        known = pages[-1].version
    assert [each.job for page in pages for each in page.entries] == [f"job-{i}" for i in range(5)]
    assert len(pages) == 3


def test_who_knows_more_than_redis_is_told_everything(shelf: Shelf) -> None:
    _, version = shelf.put("a")
    told = shelf.told(version + 1000)
    assert (told.since, told.version, len(told.entries)) == (0, version, 1)


def test_other_data_tells_nothing(shelf: Shelf) -> None:
    shelf.put("a")
    assert shelf.changes(epoch="another") is None


def test_what_was_lost_is_restored_but_not_over_what_is_there_or_was_removed(stage: Stage, shelf: Shelf) -> None:
    for job in ("lost", "changed", "removed"):
        shelf.put(job, "old")
    held = shelf.told().entries
    stage.redis.delete("ran:stored", "ran:changes")
    shelf.put("changed", "new")
    shelf.put("removed", "new")
    shelf.remove("removed")
    damaged = StoredEntry.parse("damaged", "rubbish")
    assert stage.run(stage.verbs.restore([*held, damaged])) == 1
    assert stage.run(stage.verbs.restore(held)) == 0
    assert {each.job: each.text for each in shelf.told().entries if each.raw} == {"lost": "old", "changed": "new"}
    assert shelf.told().stored == 2


def test_removals_are_forgotten_after_ninety_days_and_jobs_never(stage: Stage, shelf: Shelf) -> None:
    shelf.put("kept")
    shelf.put("gone")
    shelf.remove("gone")
    for name, score in stage.redis.zrange("ran:changes", 0, -1, withscores=True):
        stage.redis.zadd("ran:changes", {name: score - 91 * DAY})
    shelf.put("now")
    shelf.remove("now")
    assert stage.redis.zrange("ran:changes", 0, -1) == ["+kept", "-now"]


# ---- slots of stored jobs


def stored(stage: Stage, shelf: Shelf, name: str = "a: b", **policy: Any) -> Job:
    """A job as a replica builds it from what is stored."""
    _, version = shelf.put(name)
    return replace(stage.job(name, **policy), stored=version)


def test_a_version_that_was_changed_or_removed_since_is_not_claimed(stage: Stage, shelf: Shelf) -> None:
    job = stored(stage, shelf)
    in_code = stage.job("a: b")
    slot = stage.slot(job)
    newer = stored(stage, shelf)
    before = stage.snapshot()
    assert stage.claim(Offer(job, slot)) == [Verdict(Word.STALE)]
    assert stage.snapshot() == before
    assert stage.claim(Offer(newer, slot)) == [Verdict(Word.WON)]
    shelf.remove("a: b")
    assert stage.claim(Offer(newer, stage.slot(job))) == [Verdict(Word.STALE)]
    assert stage.claim(Offer(in_code, stage.slot(job))) == [Verdict(Word.WON)], "code is not what was removed"


@pytest.mark.parametrize("is_put_again", [False, True])
@pytest.mark.parametrize("state", [SlotState.CLAIMED, SlotState.QUEUED, SlotState.POSTPONED, SlotState.FAILED])
def test_a_removed_job_leaves_no_slot_that_begins(
    state: SlotState, is_put_again: bool, stage: Stage, shelf: Shelf
) -> None:
    slip, run = brought(stage, stored(stage, shelf, on_failure="again"), state)
    shelf.remove("a: b")
    if is_put_again:
        shelf.put("a: b")
    assert stage.begin(slip, from_fence=run.fence if run else "") == Dropped(Word.OVER)
    assert stage.record(slip.key)["why"] == "its job was removed"
    assert stage.state(slip.key) == "missed"
    assert stage.deadline(slip.key) is None


@pytest.mark.parametrize("is_put_again", [False, True])
@pytest.mark.parametrize("state", [SlotState.CLAIMED, SlotState.QUEUED, SlotState.POSTPONED, SlotState.FAILED])
def test_a_sweep_ends_the_slots_of_a_removed_job(
    state: SlotState, is_put_again: bool, stage: Stage, shelf: Shelf
) -> None:
    slip, _ = brought(stage, stored(stage, shelf, on_failure="again"), state)
    shelf.remove("a: b")
    if is_put_again:
        shelf.put("a: b")
    assert stage.swept(slip.key, task="arq:x").word is Word.MISSED
    assert stage.state(slip.key) == "missed"


def test_what_runs_when_its_job_is_removed_runs_to_its_end(stage: Stage, shelf: Shelf) -> None:
    run = stage.running(stored(stage, shelf))
    shelf.remove("a: b")
    assert stage.heartbeat(run) == Word.YES
    assert stage.begin(run.slip) == Dropped(Word.BUSY)
    assert stage.finish(run) == Word.YES
    assert stage.state(run.slip.key) == "done"


@pytest.mark.parametrize("way", ["sweep", "begin"])
def test_a_run_that_vanished_is_lost_once_its_job_is_removed(way: str, stage: Stage, shelf: Shelf) -> None:
    run = stage.running(stored(stage, shelf))
    shelf.remove("a: b")
    if way == "sweep":
        assert stage.swept(run.slip.key).word is Word.LOST
    else:
        stage.pass_deadline(run.slip.key)
        assert stage.begin(run.slip) == Dropped(Word.LOST)
    assert stage.record(run.slip.key)["why"] == "its worker w1 fell silent, and its job was removed"


def test_the_retry_that_a_run_sent_itself_ends_it_once_its_job_is_removed(stage: Stage, shelf: Shelf) -> None:
    run = stage.running(stored(stage, shelf))
    shelf.remove("a: b")
    assert stage.begin(run.slip, from_fence=run.fence) == Dropped(Word.OVER)
    assert stage.postpone(run) == Word.STALE


def test_a_changed_job_leaves_the_slots_of_its_older_versions_alone(stage: Stage, shelf: Shelf) -> None:
    slip, _ = brought(stage, stored(stage, shelf), SlotState.QUEUED)
    shelf.put("a: b", "other", schedule="v2")
    assert isinstance(stage.begin(slip), Run)


def test_a_record_that_redis_lost_is_not_made_anew_for_a_removed_job(stage: Stage, shelf: Shelf) -> None:
    job = stored(stage, shelf)
    slip = stage.slip(job, stage.slot(job))
    assert isinstance(stage.begin(slip), Run)
    gone = stage.slip(job, stage.slot(job))
    shelf.remove("a: b")
    assert stage.begin(gone) == Dropped(Word.OVER)
    assert not stage.redis.exists(f"{gone.key}:record")


def test_a_schedule_that_comes_back_is_in_force_from_then_and_ends_with_its_job(stage: Stage, shelf: Shelf) -> None:
    sinces = []
    for schedule in ("v1", "v2", "v1"):
        shelf.put("a", schedule=schedule)
        sinces.append(shelf.entry("a").since)
        known = [Known("a", schedule, sinces[-1])]
        stage.run(stage.verbs.register(Process("r1"), known, epoch=EPOCH_VALUE, is_last=True))
    first, second, third = sinces
    known_now = [each.rsplit(":", 2)[0] for each in str(stage.redis.hget("ran:jobs", "a")).split()]
    assert known_now == [f"v2:{second}", f"v1:{third}"]
    assert stage.redis.hget("ran:past", "a") == f"v1:{first}:{second}"
    shelf.remove("a")
    assert stage.redis.hget("ran:jobs", "a") == "", "the older one is not in force again"
    assert str(stage.redis.hget("ran:past", "a")).split()[1] == f"v2:{second}:{third}"


def brought(stage: Stage, job: Job, state: SlotState) -> tuple[Slip, Run | None]:
    slip = stage.claimed(job)
    if state is SlotState.CLAIMED:
        return slip, None
    stage.guard(job)
    assert stage.confirm(slip) == Word.QUEUED
    if state is SlotState.QUEUED:
        return slip, None
    run = stage.began(slip)
    if state is SlotState.POSTPONED:
        assert stage.postpone(run, HOUR) == Word.YES
    else:
        assert stage.fail(run) == Word.FAILED
    return slip, run
