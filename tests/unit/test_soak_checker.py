"""The checker of soaks, rule by rule, on ledgers made by hand: each broken promise is found, and only that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from slotqueue.slots import SlotState
from tests.soak.accounts import Account, Accounts
from tests.soak.checker import Due, Evidence, Violation, check, figures
from tests.soak.faults import EMPTIED, FAILED_OVER, Struck
from tests.soak.ledger import Entry

KEY = "ran:complete:2026-11-30T03:00"
SKIP = "ran:skip:2026-11-30T03:00"
KILLED = Struck("worker killed", "worker-1", 101.5, 102.0)
WAS_EMPTIED = Struck(EMPTIED, "redis", 101.5, 102.0)
WAS_FAILED_OVER = Struck(FAILED_OVER, "redis", 101.5, 102.0)


def entry(what: str, at: float, *, key: str = KEY, by: str = "worker-1", fence: int = 1, until: float = 0.0) -> Entry:
    return Entry(what, key, by, at, fence=fence, until=until)


def due(state: SlotState | None = SlotState.DONE, *, key: str = KEY, is_missed: bool = False) -> Due:
    return Due(key, 100.0, "complete" in key, state, is_missed)


def run(at: float = 101.0, *, key: str = KEY, by: str = "worker-1", fence: int = 1) -> list[Entry]:
    return [
        entry("leased", at, key=key, by=by, fence=fence, until=at + 2),
        entry("began", at, key=key, by=by, fence=fence),
        entry("ended", at + 0.1, key=key, by=by, fence=fence),
        entry("done", at + 0.2, key=key, by=by, fence=fence),
    ]


def rules(entries: Sequence[Entry], *dues: Due, faults: Sequence[Struck] = ()) -> set[str]:
    by_time = sorted(entries, key=lambda each: each.at)
    return {violation.rule for violation in check(Evidence(by_time, faults, dues or (due(),)))}


def test_a_plain_run_keeps_every_promise() -> None:
    assert rules([entry("claimed", 100.0, by="replica-1"), *run()]) == set()


@pytest.mark.parametrize("state", [None, SlotState.QUEUED, SlotState.RUNNING])
def test_a_slot_without_an_end_is_found(state: SlotState | None) -> None:
    assert rules(run(), due(state)) == {"every slot ends"}


def test_a_slot_in_a_recorded_gap_has_ended() -> None:
    assert rules([], due(None, is_missed=True)) == set()


def test_a_complete_slot_that_never_ran_is_found_and_one_that_ended_by_name_is_not() -> None:
    assert rules([], due(SlotState.SENT)) == {"complete slots are done"}
    assert rules([], due(SlotState.DEAD)) == set()


def test_a_skip_slot_that_begins_again_is_found_unless_it_was_handed_back() -> None:
    first, second = entry("began", 101, key=SKIP), entry("began", 103, key=SKIP, fence=2)
    ended = due(key=SKIP)
    assert rules([first, second], ended, faults=[KILLED]) == {"skip slots begin once"}
    assert rules([first, second], ended, faults=[WAS_EMPTIED]) == {"skip slots begin once"}
    assert rules([first, second], ended, faults=[WAS_FAILED_OVER]) == set()
    assert rules([first, entry("postponed", 102, key=SKIP), second], ended, faults=[KILLED]) == set()


def test_two_leases_at_once_are_found() -> None:
    first = [entry("leased", 101, until=103), entry("began", 101)]
    assert rules([*first, *run(102.9, by="worker-2", fence=2)], faults=[KILLED]) == {"leases exclude each other"}
    assert rules([*first, *run(103.1, by="worker-2", fence=2)], faults=[KILLED]) == set()
    handed_back = entry("postponed", 102)
    assert rules([*first, handed_back, *run(102.9, by="worker-2", fence=2)], faults=[KILLED]) == set()


def test_a_run_after_the_done_marker_is_found_unless_the_data_was_lost() -> None:
    again = run(103, by="worker-2", fence=2)
    assert rules([*run(), *again], faults=[KILLED]) == {"nothing begins after done"}
    assert rules([*run(), *again], faults=[WAS_EMPTIED]) == set()


@pytest.mark.parametrize("what, at", [("claimed", 98.4), ("began", 99.9)])
def test_a_slot_before_its_time_is_found(what: str, at: float) -> None:
    assert rules([entry(what, at), *run()], faults=[KILLED]) >= {"nothing begins early"}


def test_a_claim_ahead_of_its_time_is_none() -> None:
    assert rules([entry("claimed", 98.6), *run()]) == set()


def test_two_winners_of_one_slot_are_found_and_an_owner_that_hears_it_twice_is_not() -> None:
    won = entry("claimed", 100, by="replica-1")
    assert rules([won, entry("claimed", 100.1, by="replica-2"), *run()]) == {"slots are claimed once"}
    assert rules([won, entry("claimed", 100.1, by="replica-1"), *run()]) == set()


def test_a_repeat_that_no_fault_explains_is_found() -> None:
    entries = [entry("began", 101), entry("began", 104, by="worker-2", fence=2), entry("ended", 105, fence=2)]
    assert rules(entries) == {"repeats are explained"}
    assert rules(entries, faults=[KILLED]) == set()


@pytest.mark.parametrize("key", ["ran:nobody:2026-11-30T03:00", "ran:complete_long:2026-11-30T03:00:01"])
def test_a_slot_that_no_schedule_has_is_found(key: str) -> None:
    assert rules([*run(), *run(key=key)]) == {"only due slots run"}


def account(counted: dict[str, int], on_record: dict[str, int], in_gaps: int = 0, *in_both: str) -> Account:
    return Account(counted, on_record, in_gaps, in_both)


@pytest.mark.parametrize(
    "counted, on_record, in_gaps, is_sound",
    [
        ({"done": 3, "missed": 2}, {"done": 3, "queued": 1}, 2, True),
        ({"done": 3, "missed": 3}, {"done": 3, "missed": 1}, 2, True),
        ({"done": 4}, {"done": 3}, 0, False),
        ({"done": 2}, {"done": 3}, 0, False),
        ({"done": 3}, {"done": 3, "skipped": 1}, 0, False),
        ({"done": 3, "lost": 1}, {"done": 3}, 0, False),
        ({"done": 3}, {"done": 3}, 2, False),
        ({"done": 3, "missed": 2}, {"done": 3, "missed": 1}, 2, False),
        ({"done": 2, "lost": 1}, {"done": 3}, 0, False),
        ({"done": 3, "queued": 1}, {"done": 3, "queued": 1}, 0, True),
    ],
)
def test_a_counter_that_does_not_agree_with_the_slots_is_found(
    counted: dict[str, int], on_record: dict[str, int], in_gaps: int, is_sound: bool
) -> None:
    accounts = Accounts({"a": account(counted, on_record, in_gaps)}, claimed=sum(on_record.values()))
    assert found_by_counters(accounts) is not is_sound


def test_ended_slots_that_were_finished_all_the_same_are_counted_twice_and_as_reopened() -> None:
    jobs = {"a": account({"done": 3, "lost": 1}, {"done": 3}), "b": account({"sent": 2}, {"sent": 1, "running": 1})}
    assert not found_by_counters(Accounts(jobs, claimed=5, reopened=2))
    assert found_by_counters(Accounts(jobs, claimed=5, reopened=1))
    assert found_by_counters(Accounts(jobs, claimed=5, reopened=3))


def test_a_claim_that_is_not_counted_or_counted_twice_is_found() -> None:
    jobs = {"a": account({"done": 1}, {"done": 1, "queued": 1}), "b": account({"sent": 1}, {"sent": 1})}
    assert [found_by_counters(Accounts(jobs, claimed=number)) for number in (2, 3, 4)] == [True, False, True]


def test_a_slot_on_record_and_in_a_gap_was_reopened_and_is_found_where_it_was_claimed() -> None:
    both = account({"done": 1, "missed": 1}, {"done": 1}, 1, KEY)
    assert not found_by_counters(Accounts({"a": both}, reopened=1))
    assert found_by_counters(Accounts({"a": both}, claimed=1))
    assert found_by_counters(Accounts({"a": both}, claimed=1, reopened=1))


def found_by_counters(accounts: Accounts) -> bool:
    found = {violation.rule for violation in check(Evidence(run(), [], [due()], accounts))}
    assert found <= {"counters sum to slots due"}
    return bool(found)


def test_outcomes_add_up_to_the_slots_due() -> None:
    gap = due(None, key="ran:skip:2026-11-30T03:00:01", is_missed=True)
    gone = due(None, key="ran:skip:2026-11-30T03:00:02")
    found = figures(Evidence(run(107), [KILLED], [due(), gap, gone]))
    assert found.outcomes == {"done": 1, "missed": 1, "gone with the data": 1}
    assert (found.slots, found.runs, found.repeats, found.faults) == (
        3,
        1,
        {"complete": 0, "skip": 0},
        {"worker killed": 1},
    )
    assert found.never_ended == {"complete": 0, "skip": 2}
    assert (found.longest_recovery_s, found.slowest) == (7.1, KEY)


def test_a_violation_says_rule_slot_and_what() -> None:
    assert str(Violation("every slot ends", KEY, "it is queued")) == f"every slot ends: {KEY}: it is queued"
