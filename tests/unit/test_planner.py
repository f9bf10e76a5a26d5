"""The planner: what is due, missed and coalesced, from fire times alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotqueue.answers import Share
from slotqueue.jobs import Job
from slotqueue.planner import Due, Planner
from slotqueue.policy import Policy
from slotqueue.protocols import Schedule
from slotqueue.schedules import Cron, Every
from slotqueue.slots import to_ms
from slotqueue.window import Window

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def job(name: str = "a", schedule: Schedule | None = None, **policy: Any) -> Job:
    schedule = schedule or Every(minutes=1)
    said = Policy(**{"on_crash": "complete", **policy})
    return Job(name=name, schedule=schedule, task=name, enqueuer="arq", policy=said, period=MINUTE)


def planner_with(*jobs: Job, since: datetime = NOON, decided: datetime | None = None) -> Planner:
    planner = Planner("ran")
    for each in jobs:
        planner.add(each, since=to_ms(since), decided=to_ms(decided) if decided else 0)
    return planner


def fire_times(dues: Iterable[Due]) -> list[str]:
    return [f"{offer.slot.fire_time:%H:%M:%S}" for due in dues for offer in due.offers]


def settle(planner: Planner, now: datetime) -> list[str]:
    """One pass that the store answers."""
    dues = planner.due(to_ms(now)).dues
    for due in dues:
        planner.settle(due)
    return fire_times(dues)


def test_a_new_job_owes_nothing_from_before_it_was_known() -> None:
    planner = planner_with(job(schedule=Cron("0 9 * * *")), since=NOON)
    assert settle(planner, NOON + timedelta(hours=2)) == []
    assert settle(planner, NOON + timedelta(hours=21)) == ["09:00:00"]


def test_a_job_is_known_before_it_is_planned_so_that_an_early_sweep_does_not_put_its_slots_off() -> None:
    planner, expected = Planner("ran"), job()
    planner.expect(expected)
    assert planner.job("a") is expected
    assert len(planner) == 0
    planner.remove("a")
    assert planner.job("a") is None


def test_a_slot_is_due_at_its_instant_and_not_before() -> None:
    planner = planner_with(job())
    assert planner.next_at() == to_ms(NOON + MINUTE)
    assert settle(planner, NOON + MINUTE - timedelta(milliseconds=1)) == []
    assert settle(planner, NOON + MINUTE) == ["12:01:00"]
    assert settle(planner, NOON + MINUTE) == []


def test_the_last_slot_of_a_schedule_that_ends_is_offered_and_none_follows() -> None:
    planner = planner_with(job(schedule=Window(Every(minutes=1), NOON, NOON + 2 * MINUTE)))
    plan = planner.due(to_ms(NOON + MINUTE))
    assert (fire_times(plan.dues), plan.troubles) == (["12:01:00"], [])
    planner.settle(plan.dues[0])
    assert planner.next_at() is None


def test_ticks_that_are_starved_for_a_day_pass_over_no_slot() -> None:
    """Case 45: a pass every 61 s for 24 h; each minute's slot is offered once, two of them where a pass was late."""
    planner = planner_with(job())
    passes = [settle(planner, NOON + timedelta(seconds=61 * i)) for i in range(1, 24 * 3600 // 61 + 1)]
    offered = [each for some in passes for each in some]
    assert len(offered) == len(set(offered)) == 1439
    assert {len(some) for some in passes} == {1, 2}


def test_what_is_put_back_is_due_again() -> None:
    planner = planner_with(job())
    (due,) = planner.due(to_ms(NOON + MINUTE)).dues
    assert planner.due(to_ms(NOON + MINUTE)).dues == []
    planner.put_back(due)
    assert settle(planner, NOON + MINUTE) == ["12:01:00"]


def test_after_a_gap_the_newest_slot_and_lookback_before_it_are_offered_oldest_first() -> None:
    planner = planner_with(job(lookback=3))
    (due,) = planner.due(to_ms(NOON + 10 * MINUTE)).dues
    assert fire_times([due]) == ["12:07:00", "12:08:00", "12:09:00", "12:10:00"]
    assert due.gap is not None
    assert (due.gap.after, due.gap.until) == (to_ms(NOON), to_ms(NOON + 7 * MINUTE) - 1)
    assert due.gap.why == "older than the lookback"


def test_each_offer_knows_the_interval_before_it() -> None:
    planner = planner_with(job(schedule=Cron("0 9 * * 1-5")), since=NOON - timedelta(days=4))
    (due,) = planner.due(to_ms(NOON)).dues
    intervals = [offer.slot.interval for offer in due.offers]
    friday, monday = NOON.replace(day=27, hour=9), NOON.replace(hour=9)
    assert intervals == [(friday - timedelta(days=1), friday), (friday, monday)]


def test_coalesce_offers_only_the_newest() -> None:
    planner = planner_with(job(coalesce=True, lookback=5))
    (due,) = planner.due(to_ms(NOON + 4 * MINUTE)).dues
    assert fire_times([due]) == ["12:04:00"]
    assert due.gap is not None
    assert due.gap.why == "coalesced into a newer slot"


def test_a_straddled_slot_is_caught_up_once_with_its_own_time() -> None:
    schedule = Cron("0 12 * * *")
    planner = planner_with(job(schedule=schedule), since=NOON - timedelta(days=9), decided=NOON - timedelta(days=1))
    (due,) = planner.due(to_ms(NOON + timedelta(seconds=20))).dues
    assert [offer.slot.key for offer in due.offers] == ["ran:a:2026-11-30T12:00"]
    assert due.gap is None


def test_a_shortened_schedule_fires_next_and_back_fills_nothing() -> None:
    evening = NOON.replace(hour=18)
    planner = planner_with(job(schedule=Cron("0 0 * * *")), since=NOON - timedelta(days=9))
    settle(planner, NOON)
    planner.add(job(schedule=Cron("* * * * *")), since=to_ms(evening), decided=to_ms(NOON.replace(hour=0)))
    assert settle(planner, evening + timedelta(seconds=59)) == []
    assert settle(planner, evening + MINUTE) == ["18:01:00"]
    assert len(planner) == 1


def test_years_of_downtime_are_not_walked() -> None:
    planner = planner_with(job(schedule=Every(seconds=5)), since=NOON - timedelta(days=3650))
    began = time.process_time()
    assert len(settle(planner, NOON)) == 4
    assert time.process_time() - began < 0.5, "63 million slots were walked"


def test_an_idle_job_costs_a_pass_nothing() -> None:
    asked: list[datetime] = []

    class Counting:
        def between(self, start: datetime, end: datetime) -> list[datetime]:
            raise AssertionError

        def next_after(self, instant: datetime) -> datetime:
            asked.append(instant)
            return NOON + timedelta(days=1)

        def latest_at(self, instant: datetime) -> None:
            raise AssertionError

    planner = planner_with(*(job(f"j{i}", Counting()) for i in range(50)))
    asked.clear()
    for i in range(100):
        assert planner.due(to_ms(NOON) + i).dues == []
    assert asked == []


def test_a_schedule_that_raises_is_set_aside_and_asked_again_in_a_minute() -> None:
    class Failing(Every):
        is_sound = False

        def next_after(self, t: datetime) -> datetime | None:
            if not self.is_sound:
                raise LookupError("the zone has gone")
            return super().next_after(t)

    failing = Failing(minutes=1)
    planner = planner_with(job("good"))
    assert planner.add(job("bad", failing), since=to_ms(NOON), decided=0) is not None
    assert settle(planner, NOON + MINUTE - timedelta(seconds=1)) == []
    plan = planner.due(to_ms(NOON + MINUTE))
    assert fire_times(plan.dues) == ["12:01:00"]
    assert [(trouble.job.name, trouble.error) for trouble in plan.troubles] == [
        ("bad", "LookupError: the zone has gone")
    ]
    for due in plan.dues:
        planner.settle(due)
    Failing.is_sound = True
    try:
        planner.remove("good")
        settle(planner, NOON + 2 * MINUTE)
        assert settle(planner, NOON + 2 * MINUTE) == ["12:01:00", "12:02:00"], "what it owed meanwhile is caught up"
    finally:
        Failing.is_sound = False


def test_a_schedule_that_does_not_grow_never_makes_a_tight_loop() -> None:
    class Stuck(Every):
        def next_after(self, t: datetime) -> datetime | None:
            return t

    planner = Planner("ran")
    assert planner.add(job("a", Stuck(minutes=1)), since=to_ms(NOON), decided=0) is not None
    assert planner.due(to_ms(NOON + MINUTE)).troubles[0].error.endswith(f"not after {NOON.isoformat()}")
    assert planner.due(to_ms(NOON + MINUTE)).troubles == []


def test_a_removed_job_is_not_due_any_more() -> None:
    planner = planner_with(job("a"), job("b"))
    planner.remove("a")
    planner.remove("never-there")
    assert [due.offers[0].job.name for due in planner.due(to_ms(NOON + MINUTE)).dues] == ["b"]


def test_a_job_removed_while_its_slot_is_out_does_not_come_back() -> None:
    planner = planner_with(job("a"))
    (due,) = planner.due(to_ms(NOON + MINUTE)).dues
    planner.remove("a")
    planner.settle(due)
    assert planner.next_at() is None


def test_a_job_removed_while_it_waits_out_a_failure_does_not_come_back() -> None:
    class Failing(Every):
        def next_after(self, t: datetime) -> datetime | None:
            raise LookupError("the zone has gone")

    planner = planner_with(job("a", Failing(minutes=1)), job("b", Failing(minutes=1)))
    planner.remove("a")
    assert planner.rewind(to_ms(NOON), is_data_lost=True) == []
    assert [trouble.job.name for trouble in planner.due(to_ms(NOON + MINUTE)).troubles] == ["b"]


class Compared(int):
    """An instant that counts how often it is compared with another."""

    times = 0

    def __radd__(self, other: int) -> Compared:
        return Compared(int(self) + other)

    def __lt__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) < int(other)


@dataclass(frozen=True, kw_only=True)
class Counted(Job):
    def delay_of(self, fire_ms: int) -> int:
        return Compared(super().delay_of(fire_ms))


def test_to_add_or_remove_a_job_takes_no_more_steps_than_the_logarithm_of_their_number() -> None:
    def counted(i: int) -> Job:
        plain = job(f"j{i}", Every(days=1, offset=i))
        return Counted(**{each.name: getattr(plain, each.name) for each in fields(Job) if each.init})

    count = 2**12
    planner = planner_with(*(counted(i) for i in range(count)))
    for i in (count // 3, 50_000, 0):  # in the middle, the last and the next instant there is
        planner.remove(f"j{i}")
        Compared.times = 0
        planner.add(counted(i), since=to_ms(NOON), decided=0)
        planner.remove(f"j{i}")
        assert planner.next_at() is not None
        assert Compared.times <= 3 * 12


def test_jitter_delays_the_offer_and_neither_key_nor_order() -> None:
    late = job(schedule=Every(minutes=1), jitter=30)
    planner = planner_with(late)
    fire = to_ms(NOON + MINUTE)
    assert planner.next_at() == fire + late.delay_of(fire)
    assert planner.due(fire + late.delay_of(fire) - 1).dues == []
    (due,) = planner.due(fire + late.delay_of(fire)).dues
    assert due.offers[0].slot.key == "ran:a:2026-11-30T12:01"


def test_what_is_delayed_waits_also_where_older_slots_are_undecided() -> None:
    late = job(jitter=30)
    planner = planner_with(late)
    third = to_ms(NOON + 3 * MINUTE)
    (due,) = planner.due(third + late.delay_of(third) - 1).dues
    assert fire_times([due]) == ["12:01:00", "12:02:00"]
    planner.settle(due)
    assert planner.next_at() == third + late.delay_of(third)


@pytest.mark.parametrize("policy", [{"coalesce": True}, {"lookback": 0}])
def test_what_is_delayed_waits_also_where_only_the_newest_is_wanted(policy: dict[str, Any]) -> None:
    late = job(jitter=30, **policy)
    planner = planner_with(late)
    third = to_ms(NOON + 3 * MINUTE)
    (due,) = planner.due(third + late.delay_of(third) - 1).dues
    assert fire_times([due]) == ["12:02:00"]
    planner.settle(due)
    assert planner.next_at() == third + late.delay_of(third)


# ---- ahead of time


def _ahead_of(jobs: Iterable[Job], share: Share = Share(), since: datetime = NOON) -> Planner:  # noqa: B008 - a value
    planner = Planner("ran", ahead_ms=10)
    planner.share = share
    for each in jobs:
        planner.add(each, since=to_ms(since), decided=0)
    return planner


def test_a_slot_is_handed_out_ahead_of_its_time_once() -> None:
    planner = _ahead_of([job()])
    at = to_ms(NOON + MINUTE)
    assert planner.next_at() == at - 10
    assert planner.due(at - 11).dues == []
    (due,) = planner.due(at - 10).dues
    assert (fire_times([due]), due.at) == (["12:01:00"], at)
    planner.settle(due)
    assert planner.due(at + 1).dues == []
    assert planner.next_at() == to_ms(NOON + 2 * MINUTE) - 10


@pytest.mark.parametrize("overlap", ["forbid", "hold"])
def test_where_slots_must_not_overlap_each_is_handed_out_at_its_time(overlap: str) -> None:
    planner = _ahead_of([job(overlap=overlap)])
    at = to_ms(NOON + MINUTE)
    assert planner.due(at - 1).dues == []
    assert fire_times(planner.due(at).dues) == ["12:01:00"]


@pytest.mark.parametrize("size, ahead", [(1, 10), (100, 25), (3000, 460), (20_000, 1500)])
def test_the_larger_a_burst_the_earlier_it_is_handed_out(size: int, ahead: int) -> None:
    planner = _ahead_of(job(f"job-{number}") for number in range(size))
    at = to_ms(NOON + MINUTE)
    assert planner.next_at() == at - ahead
    assert planner.due(at - ahead - 1).dues == []
    assert len(planner.due(at - ahead).dues) == size
    assert planner.most_ahead_ms == 1500


def test_of_a_burst_each_replica_is_handed_its_share_first_and_the_others_a_moment_later() -> None:
    jobs = [job(f"job-{number}") for number in range(600)]
    at = to_ms(NOON + MINUTE)
    firsts = []
    for rank in range(3):
        planner = _ahead_of(jobs, Share(rank, 3))
        mine = planner.due(at).dues
        assert not any(due.others for due in mine)
        firsts.append({due.entry.job.name for due in mine})
        for due in mine:
            planner.settle(due)
        assert planner.due(at + 499).dues == []
        theirs = planner.due(at + 500).dues
        assert {due.others for due in theirs} == {
            f"ran:{each.name}:2026-11-30T12:01" for each in jobs if each.name not in firsts[-1]
        }
        planner.settle(theirs[0])
        for due in theirs[1:]:
            planner.put_back(due)
        offered = planner.due(at + 500).dues
        assert fire_times(offered) == ["12:01:00"] * (len(theirs) - 1), "what is not claimed is offered as any other"
        assert theirs[0].entry in {due.entry for due in planner.due(at + 60_500).dues}
    assert sum(map(len, firsts)) == len(set().union(*firsts)) == 600
    assert all(150 < len(first) < 250 for first in firsts)


@pytest.mark.parametrize("size, seconds", [(199, 60), (600, 1)])
def test_few_slots_and_those_of_quick_jobs_are_everybodys_at_once(size: int, seconds: int) -> None:
    jobs = [
        replace(job(f"job-{number}", Every(seconds=seconds)), period=timedelta(seconds=seconds))
        for number in range(size)
    ]
    planner = _ahead_of(jobs, Share(0, 3))
    assert len(planner.due(to_ms(NOON + timedelta(seconds=seconds))).dues) == size


def test_after_a_loss_of_data_a_skip_slot_that_may_have_been_claimed_ahead_is_in_the_gap() -> None:
    at = to_ms(NOON + MINUTE)
    planner = _ahead_of([job("s", on_crash="skip")])
    assert planner.rewind(at - 11, is_data_lost=True) == []
    (gap,) = planner.rewind(at - 10, is_data_lost=True)
    assert (gap.after, gap.until) == (to_ms(NOON), at)
    assert planner.next_at() == to_ms(NOON + 2 * MINUTE) - 10


def test_after_an_outage_jobs_that_complete_offer_their_last_slots_again_and_jobs_that_skip_do_not() -> None:
    planner = planner_with(job("c", lookback=1), job("s", on_crash="skip"))
    settle(planner, NOON + 5 * MINUTE)
    assert planner.rewind(to_ms(NOON + 5 * MINUTE), is_data_lost=False) == []
    assert settle(planner, NOON + 5 * MINUTE) == ["12:04:00", "12:05:00"]


def test_an_outage_adds_its_slots_to_those_that_are_offered_again_and_makes_no_gap() -> None:
    planner = planner_with(job("c", lookback=1))
    settle(planner, NOON + 4 * MINUTE)
    planner.rewind(to_ms(NOON + 5 * MINUTE), is_data_lost=False)
    (due,) = planner.due(to_ms(NOON + 5 * MINUTE)).dues
    assert fire_times([due]) == ["12:04:00", "12:05:00"]
    assert due.gap is None


def test_what_was_undecided_before_an_outage_is_not_forgotten_by_it() -> None:
    planner = planner_with(job("c", lookback=1))
    planner.rewind(to_ms(NOON + 5 * MINUTE), is_data_lost=False)
    (due,) = planner.due(to_ms(NOON + 5 * MINUTE)).dues
    assert fire_times([due]) == ["12:04:00", "12:05:00"]
    assert due.gap is not None
    assert (due.gap.after, due.gap.until) == (to_ms(NOON), to_ms(NOON + 4 * MINUTE) - 1)


def test_after_a_loss_of_data_what_a_skip_job_may_have_decided_is_a_gap() -> None:
    planner = planner_with(job("s", on_crash="skip"))
    settle(planner, NOON + MINUTE)
    (gap,) = planner.rewind(to_ms(NOON + 3 * MINUTE), is_data_lost=True)
    assert (gap.after, gap.until) == (to_ms(NOON + MINUTE), to_ms(NOON + 3 * MINUTE))
    assert settle(planner, NOON + 3 * MINUTE) == []
    assert settle(planner, NOON + 4 * MINUTE) == ["12:04:00"]


def test_rewinding_never_goes_back_before_the_job_was_known() -> None:
    planner = planner_with(job("c", lookback=10), since=NOON)
    settle(planner, NOON + 2 * MINUTE)
    planner.rewind(to_ms(NOON + 2 * MINUTE), is_data_lost=True)
    assert settle(planner, NOON + 2 * MINUTE) == ["12:01:00", "12:02:00"]


@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=20),
    st.sampled_from([Every(seconds=45), Every(minutes=1), Cron("*/7 * * * *"), Cron("30 * * * *")]),
    st.integers(0, 4),
    st.booleans(),
)
def test_every_slot_is_offered_once_or_lies_in_a_gap(
    steps: list[int], schedule: Schedule, lookback: int, coalesce: bool
) -> None:
    planner = planner_with(job(schedule=schedule, lookback=lookback, coalesce=coalesce))
    now, offered, missed = NOON, [], []
    for step in steps:
        now += timedelta(seconds=step)
        for due in planner.due(to_ms(now)).dues:
            offered += [to_ms(offer.slot.fire_time) for offer in due.offers]
            missed += [(due.gap.after, due.gap.until)] if due.gap else []
            planner.settle(due)
    fires = [
        to_ms(fire) for fire in schedule.between(NOON + timedelta(milliseconds=1), now + timedelta(milliseconds=1))
    ]
    in_gaps = [fire for fire in fires for after, until in missed if after < fire <= until]
    assert offered == sorted(offered)
    assert sorted([*offered, *in_gaps]) == fires
