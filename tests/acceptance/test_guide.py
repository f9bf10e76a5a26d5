"""The "Verify" lines of the guide on singleton jobs, one test each, word for word.

The claims of five replicas out of step are in tests/races, and every crash point in tests/faults.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from slotqueue import current_slot
from slotqueue.answers import Word
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.messages import Accepted
from tests.fleet.fixtures import NewFleet
from tests.fleet.hand import Hand
from tests.waiting import eventually

pytestmark = pytest.mark.processes
_ROOT = Path(__file__).parents[2]

_COMPUTE = """
import json, time
off = {off}
real = time.time
time.time = lambda: real() + off
from datetime import datetime, timedelta, timezone
from slotqueue import slot_key
zone = timezone(timedelta(hours={zone}))
late = datetime(2026, 10, 2, 3, 0, 2, {late}, tzinfo=timezone.utc).astimezone(zone)
print(json.dumps([slot_key("rollup", late, timedelta(hours=1)), time.time()]))
"""


def test_skewed_replicas_compute_the_same_key() -> None:
    """Compute the key on several replicas with skewed clocks; all produce the same string for the same run."""
    replicas = [(0, 0, 0), (600, 5.5, 999_999), (-600, -8, 1)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _COMPUTE.format(off=off, zone=zone, late=late)],
            cwd=_ROOT,
            env={**os.environ, "TZ": "Asia/Kathmandu" if off else "UTC", "PYTHONPATH": str(_ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for off, zone, late in replicas
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert {key for key, _ in answers} == {"ran:rollup:2026-10-02T03:00"}
    clocks = [clock for _, clock in answers]
    assert max(clocks) - min(clocks) > 1000, "the clocks were skewed"


async def test_each_slot_runs_once_and_the_claiming_replica_is_recorded(new_fleet: NewFleet) -> None:
    """With all replicas running, each slot's job runs once and the claiming replica is recorded."""
    fleet = new_fleet(jobs=[{"name": "rollup", "every": 1}])
    await fleet.are_ready(fleet.worker(jobs=[]))
    await fleet.replicas(3)
    keys = (await fleet.has_slots("rollup", 3))[:3]
    for key in keys:
        (claimed,) = await eventually(partial(fleet.events, "SlotClaimed", key=key))
        assert fleet.redis.get(key) == claimed["replica"] == fleet.record(key)["by"]
        assert fleet.runs(key) == 1


@pytest.mark.parametrize("policy", ["skip", "complete"])
async def test_a_killed_runners_slot_is_skipped_or_completed_and_the_current_one_runs_too(
    policy: str, new_fleet: NewFleet
) -> None:
    """Kill the runner mid-job: at most once, the slot is skipped and logged; else another completes it after the lease.

    Crash a run, then let the next tick fire; the missed slot completes, and the current slot runs too.
    """
    job = {"name": "rollup", "every": 2, "task": "slow", "kwargs": {"seconds": 60}, "on_crash": policy}
    fleet = new_fleet(jobs=[job], sweep_every=0.2, lease=1)
    await fleet.are_ready(runner := fleet.worker("runner"), replica := fleet.replica("replica"))
    crashed = (await eventually(lambda: fleet.keys("rollup")))[0]
    await eventually(lambda: fleet.runs(crashed) == 1)
    runner.kill()
    fleet.let_go()
    another = fleet.worker("another")
    await fleet.are_ready(another)
    await fleet.reaches(crashed, "lost" if policy == "skip" else "done")
    await fleet.has_slots("rollup", 2 if policy == "complete" else 1)
    current = next(key for key in fleet.keys("rollup") if key != crashed and fleet.state(key) == "done")
    assert fleet.runs(current) == 1
    if policy == "skip":
        assert fleet.runs(crashed) == 1
        lost = await eventually(lambda: replica.events("SlotLost"))
        assert crashed in [event["key"] for event in lost]
        await eventually(lambda: f"{crashed} is lost" in replica.text())
    else:
        assert [mark["by"] for mark in fleet.marks(crashed)] == ["runner", "another", "another"]
        await eventually(lambda: len(another.events("RunDone", key=crashed)) == 1)


async def test_duplicates_are_prevented_at_one_layer(new_fleet: NewFleet, hand: Hand) -> None:
    """For each scheduled job, it is clear whether it runs in-process or through the job system; one layer decides.

    A second claim, a second enqueue and a second delivery each change nothing; a plain call is no slot at all.
    """
    fleet = new_fleet()
    job = hand.job("rollup", timedelta(hours=1))
    latest = hand.latest(job)
    (message,) = hand.claim(job, latest)
    key = message.slip.key
    assert hand.offer(job, latest, replica="another") == [Word.TAKEN]
    queue = ArqEnqueuer()
    queue.use_default(fleet.url)
    first, second = [(await queue.enqueue([message]))[0] for _ in range(2)]
    await queue.close()
    assert (first, second) == (Accepted(is_new=True), Accepted(is_new=False))
    await fleet.are_ready(fleet.worker())
    await fleet.reaches(key, "done")
    await eventually(lambda: not fleet.redis.zcard("arq:queue"))
    assert fleet.runs(key) == 1
    assert hand.offer(job, latest, replica="another") == [Word.TAKEN]
    with pytest.raises(LookupError):
        current_slot()
