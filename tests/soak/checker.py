"""Judges a soak afterwards: from the ledger, from the faults that were struck, and from what the store says at the end.

Each rule is a function that yields violations. Where a process cannot know when Redis did something, a rule takes the
instant that is the kindest to slotqueue: what it reports is wrong for certain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from slotqueue.slots import SlotState, parse_key
from tests.soak.accounts import Account, Accounts
from tests.soak.faults import FAILED_OVER, LOSES_DATA, Struck
from tests.soak.ledger import Entry
from tests.soak.orders import JOBS, LOOKBACK_S

EARLY_S = 0.005
AHEAD_S = 1.5
"""A slot may be claimed this long before its time."""
TAIL_S = 6.0
"""How long after it was healed a fault may still show: a lease, a sweep, arq's or kombu's own pauses."""

_NOTICED_S = 30.0
"""How long after a loss of data a slot may be offered again, on a machine that does much else."""


@dataclass(frozen=True, slots=True)
class Due:
    """A slot that was due during the soak, and what the store says of it at the end.

    Args:
        key: of the slot.
        fire: monotonic seconds.
        is_complete: its crash policy.
        state: None where there is no record.
        is_missed: whether it lies in a recorded gap.
    """

    key: str
    fire: float
    is_complete: bool
    state: SlotState | None
    is_missed: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept."""

    rule: str
    key: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.key}: {self.what}"


@dataclass(frozen=True)
class Evidence:
    """What a soak leaves behind."""

    entries: Sequence[Entry]
    faults: Sequence[Struck]
    dues: Sequence[Due]
    accounts: Accounts = field(default_factory=Accounts)
    of_slot: Mapping[str, Sequence[Entry]] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            found[entry.key].append(entry)
        object.__setattr__(self, "of_slot", dict(found))

    def said(self, key: str, *whats: str) -> list[Entry]:
        """What was written of a slot, of these kinds, by time."""
        return [entry for entry in self.of_slot.get(key, ()) if entry.what in whats]

    def is_data_lost(self, start: float, end: float) -> bool:
        """Whether Redis forgot what it had answered: it came up empty, or a replica took over that lagged."""
        return any(each.kind in LOSES_DATA and each.start <= end and start <= each.end for each in self.faults)

    def is_failed_over(self, start: float, end: float) -> bool:
        """Whether a replica that lagged took over in between: it may know a slot and not that it was begun."""
        return any(each.kind == FAILED_OVER and each.start <= end and start <= each.end for each in self.faults)

    def is_explained(self, start: float, end: float) -> bool:
        """Whether a fault was there in between, or shortly before."""
        return any(each.start <= end and start <= each.end + TAIL_S for each in self.faults)


def check(evidence: Evidence) -> list[Violation]:
    """Apply every rule."""
    return [violation for rule in RULES for violation in rule(evidence)]


def is_beyond_help(due: Due, faults: Sequence[Struck]) -> bool:
    """Whether Redis forgot all of a slot, and nobody may offer it again.

    A `skip` slot may have begun; a `complete` one is offered again unless it is older than the lookback by then.
    """
    patience = LOOKBACK_S - _NOTICED_S if due.is_complete else 0.0
    return due.state is None and any(each.kind in LOSES_DATA and each.end > due.fire + patience for each in faults)


def every_slot_ends(evidence: Evidence) -> Iterator[Violation]:
    """No slot without an end: an ended state, a recorded gap, or, where Redis forgot it, an end in the ledger."""
    for due in evidence.dues:
        is_over = due.is_missed or (due.state is not None and not due.state.is_open)
        is_forgotten = due.state is None and evidence.is_data_lost(due.fire, float("inf"))
        if is_over or (is_forgotten and evidence.said(due.key, "done", "failed")):
            continue
        if not is_beyond_help(due, evidence.faults):
            yield Violation("every slot ends", due.key, f"it is {due.state.value if due.state else 'not on record'}")


def complete_slots_are_done(evidence: Evidence) -> Iterator[Violation]:
    """A `complete` slot is done at least once, or ended by name."""
    by_name = (SlotState.DEAD, SlotState.MISSED, SlotState.SKIPPED)
    for due in evidence.dues:
        is_over = due.is_missed or due.state in by_name or is_beyond_help(due, evidence.faults)
        if due.is_complete and not is_over and not evidence.said(due.key, "ended"):
            state = due.state.value if due.state else "not on record"
            yield Violation("complete slots are done", due.key, f"its function never reached its end; it is {state}")


def skip_slots_begin_once(evidence: Evidence) -> Iterator[Violation]:
    """A `skip` slot is begun at most once, except after a clean hand-back, or a failover that forgot the begin."""
    for due in evidence.dues:
        if due.is_complete:
            continue
        for before, again in pairwise(evidence.said(due.key, "began")):
            is_handed_back = any(before.at <= each.at <= again.at for each in evidence.said(due.key, "postponed"))
            if not is_handed_back and not evidence.is_failed_over(before.at, again.at):
                what = f"begun by {before.by} (fence {before.fence}) and again by {again.by} (fence {again.fence})"
                yield Violation("skip slots begin once", due.key, what)


def leases_exclude_each_other(evidence: Evidence) -> Iterator[Violation]:
    """No two unexpired leases at once: a run begins when the one before it has ended or cannot be sure any more."""
    for key in evidence.of_slot:
        leases: dict[int, float] = {}
        for entry in evidence.said(key, "leased", "done", "postponed", "failed"):
            if entry.what != "leased":
                leases.clear()
                continue
            is_new = entry.fence not in leases
            for fence, until in leases.items():
                if (
                    is_new
                    and fence != entry.fence
                    and entry.at < until
                    and not evidence.is_data_lost(until - 60, entry.at)
                ):
                    what = f"fence {entry.fence} at {entry.at:.3f}, and fence {fence} is sure until {until:.3f}"
                    yield Violation("leases exclude each other", key, what)
            leases[entry.fence] = max(entry.until, leases.get(entry.fence, 0.0))


def nothing_begins_after_done(evidence: Evidence) -> Iterator[Violation]:
    """Once the store has taken a finish, the slot does not run again."""
    for key in evidence.of_slot:
        done = evidence.said(key, "done")
        for entry in evidence.said(key, "began"):
            if done and entry.at > done[0].at and not evidence.is_data_lost(done[0].at - TAIL_S, entry.at):
                after = entry.at - done[0].at
                what = f"begun by {entry.by} (fence {entry.fence}) {after:.3f} s after {done[0].by} was done"
                yield Violation("nothing begins after done", key, what)


def nothing_begins_early(evidence: Evidence) -> Iterator[Violation]:
    """No slot before its time, whatever the clocks of the replicas say; to claim it a little before is no beginning."""
    for due in evidence.dues:
        for entry in evidence.said(due.key, "claimed", "began"):
            ahead = AHEAD_S if entry.what == "claimed" else 0.0
            if entry.at < due.fire - ahead - EARLY_S:
                yield Violation("nothing begins early", due.key, f"{entry.what} {due.fire - entry.at:.3f} s early")


def slots_are_claimed_once(evidence: Evidence) -> Iterator[Violation]:
    """One replica wins a slot; only the owner may hear it twice."""
    for key in evidence.of_slot:
        for before, again in pairwise(evidence.said(key, "claimed")):
            if (before.by, before.pid) != (again.by, again.pid) and not evidence.is_data_lost(
                before.at - TAIL_S, again.at
            ):
                yield Violation("slots are claimed once", key, f"won by {before.by} and by {again.by}")


def repeats_are_explained(evidence: Evidence) -> Iterator[Violation]:
    """A slot runs again only where a named fault was there."""
    for key in evidence.of_slot:
        for before, again in pairwise(evidence.said(key, "began")):
            if not evidence.is_explained(before.at, again.at):
                what = (
                    f"begun by {before.by} and, {again.at - before.at:.3f} s later, by {again.by}; no fault was there"
                )
                yield Violation("repeats are explained", key, what)


def only_due_slots_run(evidence: Evidence) -> Iterator[Violation]:
    """What was claimed or ran is a slot of a schedule, in whichever version of the service."""
    schedules = {job.name: job.schedule for job in JOBS}
    for key in evidence.of_slot:
        job, fire_time = parse_key(key).job, parse_key(key).fire_time
        if job not in schedules or schedules[job].latest_at(fire_time) != fire_time:
            yield Violation("only due slots run", key, "no schedule has it")


def counters_sum_to_slots_due(evidence: Evidence) -> Iterator[Violation]:
    """Each slot that was due is in the one counter of its job that says how it ended.

    Each was found on record or in a gap (`every_slot_ends`); so for each job and state, as many are counted as were
    found. Where an ended slot was begun or finished all the same it is counted once more, and each of these is counted
    too; nothing but `done` can follow. So is a slot that was missed in a gap and has a record since: its message had
    outlived what Redis forgot.

    A slot's end and its count are written by one script, and so are a gap and its count. So whatever befalls Redis, it
    has or has forgotten both: no fault excuses a difference. But what Redis has forgotten (it came back empty, or a
    replica that lagged took over) is in no counter, unless it was offered again.
    """
    rule, accounts = "counters sum to slots due", evidence.accounts
    again, recorded = 0, 0
    for job, account in accounts.of_job.items():
        for state in (state for state in SlotState if not state.is_open):
            counted, found = account.counted.get(state, 0), _found(account, state)
            if counted < found or (counted > found and state is SlotState.DONE):
                yield Violation(rule, job, f"{counted} are counted as {state}, and {found} are")
            again += counted - found
        again += len(account.in_both)
        recorded += sum(account.on_record.values()) - len(account.in_both)
    if again != accounts.reopened:
        yield Violation(rule, "all jobs", f"{again} ends too many are counted, and {accounts.reopened} were reopened")
    if accounts.claimed != recorded:
        yield Violation(rule, "all jobs", f"{accounts.claimed} are counted as claimed, and {recorded} are on record")


def _found(account: Account, state: SlotState) -> int:
    return account.on_record.get(state, 0) + (account.in_gaps if state is SlotState.MISSED else 0)


RULES = (
    every_slot_ends,
    complete_slots_are_done,
    skip_slots_begin_once,
    leases_exclude_each_other,
    nothing_begins_after_done,
    nothing_begins_early,
    slots_are_claimed_once,
    repeats_are_explained,
    only_due_slots_run,
    counters_sum_to_slots_due,
)


@dataclass(frozen=True)
class Figures:
    """What a soak came to.

    Args:
        slots: that were due.
        outcomes: how they ended; a state, "missed" or "gone with the data". They add up to `slots`.
        runs: how often a function was begun.
        repeats: how many of these were not the first of their slot, by crash policy.
        never_ended: how many slots had no run that reached the end of its function, by crash policy.
        claimed_again: how many slots two replicas won, since Redis had forgotten the first one, by crash policy.
        faults: how many of each kind.
        longest_recovery_s: from a slot's time to the first end of its function, where that took longest.
        slowest: the slot where it did.
    """

    slots: int
    outcomes: dict[str, int]
    runs: int
    repeats: dict[str, int]
    never_ended: dict[str, int]
    claimed_again: dict[str, int]
    faults: dict[str, int]
    longest_recovery_s: float
    slowest: str


def figures(evidence: Evidence) -> Figures:
    """Count."""
    outcomes = Counter(
        "missed" if due.is_missed and due.state is None else due.state.value if due.state else "gone with the data"
        for due in evidence.dues
    )
    began = {due.key: evidence.said(due.key, "began") for due in evidence.dues}
    ends = {
        due.key: min((each.at for each in evidence.said(due.key, "ended")), default=due.fire) for due in evidence.dues
    }
    slowest = max(evidence.dues, key=lambda due: ends[due.key] - due.fire)
    return Figures(
        slots=len(evidence.dues),
        outcomes=dict(outcomes),
        runs=sum(map(len, began.values())),
        repeats=_by_policy(evidence, lambda due: max(0, len(began[due.key]) - 1)),
        never_ended=_by_policy(evidence, lambda due: not evidence.said(due.key, "ended")),
        claimed_again=_by_policy(
            evidence, lambda due: len({each.by for each in evidence.said(due.key, "claimed")}) > 1
        ),
        faults=dict(Counter(each.kind for each in evidence.faults)),
        longest_recovery_s=round(ends[slowest.key] - slowest.fire, 2),
        slowest=slowest.key,
    )


def _by_policy(evidence: Evidence, count: Callable[[Due], int]) -> dict[str, int]:
    found = {"complete": 0, "skip": 0}
    for due in evidence.dues:
        found["complete" if due.is_complete else "skip"] += count(due)
    return found
