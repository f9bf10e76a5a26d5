from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slotqueue import Cron, Every, Policy, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.errors import ConfigurationError
from slotqueue.slots import Slot, SlotState
from slotqueue.testing import Step, simulate
from tests.faults.arrows import GUARDED
from tests.fleet.orders import Arrow

START = datetime(2026, 3, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def slots() -> SlotQueue:
    return SlotQueue("redis://nowhere.invalid:1/0", enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))


async def test_ten_slots_and_five_replicas_make_fifty_attempts_and_ten_runs(slots: SlotQueue) -> None:
    """The guide's figures. What nobody named has no part in it: there is no such Redis."""
    slots.add("rollup", Every(hours=1))
    ledger = await simulate(slots, START, START + 10 * HOUR)
    job = ledger.jobs["rollup"]
    assert (job.due, job.attempts, job.claims, job.enqueues, job.runs) == (10, 50, 10, 10, 10)
    assert job.states == {SlotState.DONE: 10}
    assert [slot.fire_time for slot in ledger.slots] == [START + hour * HOUR for hour in range(10)]
    assert len({slot.replica for slot in ledger.slots}) > 1, "the wins go round"
    assert not ledger.crashes


async def test_a_day_of_a_clock_change_has_the_slots_of_the_zone(slots: SlotQueue) -> None:
    slots.add("hourly", Cron("0 * * * *", tz="Europe/Berlin"))
    slots.add("nightly", Cron("30 2 * * *", tz="Europe/Berlin"), on_crash="skip")
    ledger = await simulate(slots, datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))
    assert ledger.jobs["hourly"].due == ledger.jobs["hourly"].runs == 23
    (nightly,) = [slot for slot in ledger.slots if slot.job == "nightly"]
    assert nightly.fire_time == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_the_steps_are_those_of_the_guarantees() -> None:
    assert [step.value for step in Step] == [arrow.value for arrow in Arrow]
    assert {fault.arrow.value for fault in GUARDED} == {step.value for step in Step}


async def test_a_death_at_each_step_ends_as_the_table_of_guarantees_says(slots: SlotQueue) -> None:
    """The table is made from real processes that are killed there: the simulation must come to the same."""
    for minute, fault in enumerate(GUARDED):  # apart, so that none dies of another's death
        for policy in ("complete", "skip"):
            offset = timedelta(minutes=minute, seconds=30 * (policy == "skip"))
            slots.add(f"{policy}: {fault.arrow}", Every(hours=1, offset=offset), on_crash=policy)
    struck: set[str] = set()

    def crash(slot: Slot, step: Step) -> bool:
        is_due = slot.job.endswith(f": {step}") and slot.job not in struck
        struck.add(slot.job if is_due else "")
        return is_due

    ledger = await simulate(slots, START, START + 2 * HOUR, replicas=2, crash=crash)
    for fault in GUARDED:
        for policy in ("complete", "skip"):
            first, second = (slot for slot in ledger.slots if slot.job == f"{policy}: {fault.arrow}")
            outcome = fault.outcome(policy)
            assert (first.runs, first.state) == (outcome.runs, outcome.state), first
            assert (second.runs, second.state) == (1, "done"), "the next one is not harmed"
    assert ledger.crashes == dict.fromkeys(Step, 2)


async def test_chance_keeps_what_is_promised_and_the_same_seed_repeats_it(slots: SlotQueue) -> None:
    slots.add("must", Every(minutes=30), lookback=5)
    slots.add("once", Every(minutes=30), on_crash="skip")
    ledgers = [await simulate(slots, START, START + 12 * HOUR, replicas=3, crash=0.05, seed=seed) for seed in (1, 1, 2)]
    assert ledgers[0] == ledgers[1] != ledgers[2]
    for ledger in ledgers:
        assert sum(ledger.crashes.values()) > 5
        for job in ledger.jobs.values():
            assert sum(job.states.values()) == job.due == 24, "every slot has its end"
        must = [slot for slot in ledger.slots if slot.job == "must"]
        assert {slot.state for slot in must} == {SlotState.DONE}
        assert all(slot.runs >= 1 for slot in must)
        once = [slot for slot in ledger.slots if slot.job == "once"]
        assert {slot.state for slot in once} <= {SlotState.DONE, SlotState.LOST}
        assert all(slot.runs <= 1 for slot in once)


async def test_what_nobody_decided_in_time_is_counted_as_missed(slots: SlotQueue) -> None:
    """The only replica dies and is back after 10 s: of a job a second, all but the lookback is gone."""
    slots.add("tight", Every(seconds=1), lookback=2)
    dead: list[Slot] = []

    def crash(slot: Slot, step: Step) -> bool:
        is_due = step is Step.CONFIRMED and not dead
        dead.extend([slot] * is_due)
        return is_due

    ledger = await simulate(slots, START, START + timedelta(minutes=1), replicas=1, crash=crash)
    job = ledger.jobs["tight"]
    assert job.due == 60
    assert job.states[SlotState.MISSED] in (7, 8)
    assert job.states[SlotState.DONE] == job.runs == 60 - job.states[SlotState.MISSED]


async def test_a_long_function_keeps_its_lease(slots: SlotQueue) -> None:
    slots.add("long", Every(hours=1), lease=60)
    ledger = await simulate(slots, START, START + 2 * HOUR, takes=timedelta(minutes=45))
    assert ledger.jobs["long"].runs == ledger.jobs["long"].enqueues == 2


async def test_a_slot_that_kills_every_worker_ends_as_a_dead_letter(slots: SlotQueue) -> None:
    slots.add("poison", Every(days=1), max_attempts=3)
    ledger = await simulate(
        slots, START, START + timedelta(days=1), replicas=1, crash=lambda _, step: step is Step.RUNNING
    )
    assert [(slot.state, slot.runs) for slot in ledger.slots] == [(SlotState.DEAD, 3)]


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"replicas": 0}, "replicas: 0 is not between 1 and 100"),
        ({"crash": 1.5}, "crash: 1.5 is not between 0 and 1"),
        ({"takes": 0}, "takes: 0 is no time that a function may take"),
        ({"end": START}, "end: .* is not after the start"),
        ({"start": START.replace(tzinfo=None)}, "start: .* has no time zone"),
    ],
)
async def test_wrong_arguments_are_named(wrong: dict[str, object], says: str, slots: SlotQueue) -> None:
    arguments = {"start": START, "end": START + HOUR, **wrong}
    with pytest.raises(ConfigurationError, match=says):
        await simulate(slots, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("overlap", ["forbid", "hold"])
async def test_slots_that_take_longer_than_their_period_are_kept_apart(overlap: str, slots: SlotQueue) -> None:
    slots.add("slow", Every(minutes=1), overlap=overlap)
    ledger = await simulate(slots, START, START + timedelta(minutes=4), replicas=1, takes=90)
    states = ledger.jobs["slow"].states
    assert states == ({SlotState.DONE: 2, SlotState.SKIPPED: 2} if overlap == "forbid" else {SlotState.DONE: 4})
