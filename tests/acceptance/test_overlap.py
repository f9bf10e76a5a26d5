"""Jobs that take longer than their period: by real replicas and a real worker, and no two runs at once."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.fleet.fixtures import NewFleet
from tests.fleet.fleet import Fleet
from tests.waiting import eventually

pytestmark = pytest.mark.processes


def _job(overlap: str, **more: object) -> dict[str, object]:
    return {"name": overlap, "every": 1, "task": "slow", "kwargs": {"seconds": 1.3}, "overlap": overlap, **more}


def _runs(fleet: Fleet, job: str) -> list[tuple[int, int, str]]:
    """When the done slots of a job began and ended, ms, in the order in which they began."""
    records = {key: fleet.record(key) for key in fleet.keys(job)}
    return sorted(
        (int(record["began"]), int(record["ended"]), key)
        for key, record in records.items()
        if record["state"] == "done"
    )


def _said_of_skipped(fleet: Fleet, job: str) -> list[str]:
    return [event["why"] for event in fleet.events("SlotSkipped") if event["job"] == job]


async def test_of_a_job_longer_than_its_period_no_two_slots_run_at_once(new_fleet: NewFleet) -> None:
    fleet = new_fleet(jobs=[_job("forbid"), _job("hold", max_held=2)], sweep_every=0.2)
    await fleet.are_ready(fleet.worker())
    await fleet.replicas(2)
    await fleet.has_slots("hold", 3)
    await fleet.has_slots("forbid", 2)
    await eventually(lambda: "skipped" in fleet.states("hold"), why="more than two would be held")
    assert "held" not in fleet.states("forbid")

    for job in ("forbid", "hold"):
        runs = _runs(fleet, job)
        assert all(one[1] <= other[0] for one, other in pairwise(runs)), runs
        assert [fleet.runs(key) for *_, key in runs] == [1] * len(runs)
        skipped = [key for key in fleet.keys(job) if fleet.state(key) == "skipped"]
        assert skipped
        assert {fleet.runs(key) for key in skipped} == {0}
        for key in skipped:
            record = fleet.record(key)
            assert record["behind"].startswith(f"ran:{job}:")
            assert record["behind"] in record["why"]
    held = [key for *_, key in _runs(fleet, "hold")]
    assert held == sorted(held), "by fire time"
    await eventually(lambda: fleet.events("SlotLetGo"), why="it is told a moment after it is so")
    let_go = [event["key"] for event in fleet.events("SlotLetGo")]
    assert set(let_go) <= {event["key"] for event in fleet.events("SlotHeld")}
    await eventually(lambda: any("overlap" in why for why in _said_of_skipped(fleet, "forbid")))
    assert not fleet.events("SlotTakenOver")
