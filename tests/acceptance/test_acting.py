"""What an operator has done, by real replicas and a real worker that know nothing of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slotqueue import Every
from slotqueue.ops import Site, backfill, pause, rerun, resume, retry, survey, trigger
from slotqueue.slots import from_ms
from tests.fleet.fixtures import Apps, NewFleet

pytestmark = pytest.mark.alone


async def test_triggered_retried_rerun_and_backfilled_slots_run_once_each(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 41, celery/django-celery-beat#537: and a job that was paused goes on with its next slot."""
    jobs = [
        {"name": "mends", "every": 86400, "task": "mends"},
        {"name": "report", "every": 3600},
        {"name": "often", "every": 1},
    ]
    fleet = new_fleet(jobs=jobs, sweep_every=0.2)
    app = apps.new()
    app.add("mends", Every(days=1), task="mends")
    app.add("report", Every(hours=1), task="quick", overlap="hold")
    app.add("often", Every(seconds=1), task="quick")
    site = Site.of(app)
    await app.tick()
    await pause(site, ["often"])
    await fleet.are_ready(fleet.worker(), *(fleet.replica(f"r{i}") for i in (1, 2)))

    triggered = (await trigger(site, "mends")).key
    await fleet.reaches(triggered, "dead")
    assert (await retry(site, triggered)).is_taken
    record = await fleet.reaches(triggered, "done")
    assert "spent" not in record
    assert fleet.runs(triggered) == 2

    again = (await rerun(site, triggered)).key
    await fleet.reaches(again, "dead")
    assert fleet.record(again)["fire"] == record["fire"]
    assert (fleet.runs(again), fleet.runs(triggered)) == (1, 2)

    end = from_ms(int(fleet.now()) * 1000)
    found = await survey(site, "report", end - timedelta(hours=4), end)
    done = await backfill(site, found)
    assert done.counts == {"claimed": 4}
    for key in found.wanted:
        await fleet.reaches(key, "done")
    assert [fleet.runs(key) for key in found.wanted] == [1, 1, 1, 1]
    began = [int(fleet.record(key)["began"]) for key in found.wanted]
    assert began == sorted(began)

    await fleet.has_slots("often", 2, state="skipped")
    await resume(site, ["often"])
    resumed = fleet.now() * 1000
    await fleet.has_slots("often", 1)
    ran = [key for key in fleet.keys("often") if fleet.state(key) != "skipped"]
    assert all(int(fleet.record(key)["fire"]) > resumed - 50 for key in ran), "nothing is caught up"
    assert not fleet.events("SlotTakenOver")
    assert {event["key"] for event in fleet.events("SlotOrdered")} >= {triggered, again, *found.wanted}
    await site.close()
