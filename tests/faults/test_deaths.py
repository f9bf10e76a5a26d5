"""A process killed at every arrow of the protocol, for both crash policies: what becomes of this slot and the next.

The table in `arrows.py` says what must come out; docs/guarantees.md and the README print the same table.
"""

from __future__ import annotations

import itertools
import signal
from datetime import timedelta
from functools import partial

import pytest

from slotqueue.slots import key_at, parse_key
from tests.faults.arrows import GUARDED, IN_PROCESS, UNGUARDED, Fault
from tests.fleet.deaths import STRUCK
from tests.fleet.fleet import Child, Fleet
from tests.fleet.orders import Arrow
from tests.load import PATIENCE
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(150)
_PERIOD = timedelta(seconds=2)
_ON_TIME_MS = 5000 * PATIENCE
"""arq's own time-outs would be later; whether a grace or a lease was waited for, the record says."""
_numbers = itertools.count(1)
_LEFT_TO_ARQ = {Arrow.TAKEN, Arrow.FINISH_UNHEARD}


@pytest.mark.parametrize("fault", GUARDED, ids=lambda fault: f"{fault.victim} killed {fault.arrow}")
async def test_with_guarded_workers(fault: Fault, guarded: Fleet) -> None:
    await _strike_both(fault, guarded, is_arq_alone=fault.arrow in _LEFT_TO_ARQ)


@pytest.mark.parametrize("fault", UNGUARDED, ids=lambda fault: f"{fault.victim} killed {fault.arrow}")
async def test_with_unguarded_workers(fault: Fault, unguarded: Fleet) -> None:
    await _strike_both(fault, unguarded, is_arq_alone=fault.victim == "worker")


@pytest.mark.parametrize("fault", IN_PROCESS, ids=lambda fault: f"{fault.victim} killed {fault.arrow}")
async def test_with_functions_of_the_process(fault: Fault, in_process: Fleet) -> None:
    await _strike_both(fault, in_process, is_arq_alone=False)


async def _strike_both(fault: Fault, fleet: Fleet, *, is_arq_alone: bool) -> None:
    """Kill one process at a slot of each job, and watch both slots and the next ones.

    One after the other: a worker that dies at one job's slot may have a message of the other in hand.
    """
    await fleet.are_ready(*(child for child in fleet.children if not child.name.startswith("doomed")))
    fleet.redis.delete(STRUCK)
    start = fleet.replica if fault.victim == "replica" else partial(fleet.worker, worker={"poll_delay": 0.02})
    for policy in ("complete", "skip"):
        victim = start(f"doomed-{next(_numbers)}", arrow=fault.arrow, doomed=policy)
        await _strike(fault, fleet, policy, victim, is_arq_alone=is_arq_alone)


async def _strike(fault: Fault, fleet: Fleet, policy: str, victim: Child, *, is_arq_alone: bool) -> None:
    key = await fleet.struck(policy)
    assert await victim.ended() == -signal.SIGKILL
    if is_arq_alone:
        fleet.let_arq_notice(key)
    expected = fault.outcome(policy)
    record = await fleet.reaches(key, expected.state)
    following = key_at("ran", policy, parse_key(key).fire_time + _PERIOD)
    await eventually(lambda: fleet.runs(key) == expected.runs, why=f"{expected.runs} runs, not {fleet.marks(key)}")
    await _runs_on_time(fleet, following)

    assert fleet.state(key) == expected.state, "it has not moved on since"
    assert fleet.runs(key) == expected.runs, fleet.marks(key)
    assert fleet.redis.exists(f"{key}:done") == (expected.state == "done")
    assert fleet.redis.zscore("ran:open", key) is None
    assert (fleet.redis.zscore("ran:dead", key) is not None) == (expected.state == "lost")
    if fault.victim == "replica":
        assert record["by"].startswith("doomed"), "the claim still names who won it"
    if is_arq_alone and fault.arrow is Arrow.FINISH_UNHEARD:
        await eventually(lambda: not fleet.redis.exists(f"arq:job:{key}"), why="arq has let the copy go")
        assert fleet.runs(key) == expected.runs


async def _runs_on_time(fleet: Fleet, key: str) -> None:
    await eventually(lambda: fleet.runs(key) == 1, why=f"the following slot {key} runs: {fleet.record(key)}")
    record = fleet.record(key)
    reached = int(record.get("began") or record["queued"])
    assert reached - int(record["fire"]) < _ON_TIME_MS, record
    assert (record.get("n", "0"), record.get("spent", "0")) == ("0", "0"), "nobody took it over"
