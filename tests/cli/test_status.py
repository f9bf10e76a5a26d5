"""`slotqueue status`, `replicas` and `workers`: from Redis alone, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slotqueue import Cron, Every, SlotQueue
from slotqueue.ops import Site, check, health, observe, replicas, workers
from slotqueue.ops.orders import replicas_note
from slotqueue.ops.silence import SILENT_MS
from slotqueue.protocols import Process
from slotqueue.slots import SlotState, from_ms
from tests.cli.conftest import Slotqueue, Start
from tests.cli.test_ops import Fake
from tests.store.registering import hourly_job, register
from tests.store.stage import DAY, HOUR, MINUTE, Stage


def asked(slotqueue: Slotqueue, url: str, *args: str) -> Any:
    result = slotqueue(*args, "--redis", url, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def job_row(slotqueue: Slotqueue, url: str, job: str = "rollup") -> dict[str, Any]:
    (row,) = asked(slotqueue, url, "status", "--job", job)["jobs"]
    assert isinstance(row, dict)
    return row


def test_a_row_tells_schedule_next_slot_and_task(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage, hourly_job(schedule=Cron("0 3 * * *", tz="Asia/Kolkata")))
    row = job_row(slotqueue, redis_url)
    assert (row["schedule"], row["says"]) == ("cron 0 3 * * * Asia/Kolkata", "at 03:00 every day, Asia/Kolkata")
    assert (row["zone"], row["task"], row["is_guarded"], row["is_in_force"]) == (
        *("Asia/Kolkata", "arq:do_rollup"),
        *(False, True),
    )
    assert row["next_fire"].endswith("T21:30:00Z")
    assert row["next_local"].endswith("T03:00:00+05:30")
    assert (row["last_key"], row["last_state"], row["undecided_since"]) == ("", None, None)
    stage.guard(hourly_job())
    text = slotqueue("status", "--redis", redis_url).stdout
    first, second = text.splitlines()
    columns = "job fires last slot state next (UTC) next (local) open overdue dead guarded note"
    assert " ".join(first.split()) == columns
    assert second.startswith("rollup  at 03:00 every day, Asia/Kolkata ")
    assert second.endswith("yes")


def test_the_newest_slot_and_what_is_open_overdue_and_dead_is_counted(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    job = hourly_job(done_within=30 * 60)
    register(stage, job, since=stage.now() - DAY)
    for state in (SlotState.DEAD, SlotState.LOST, SlotState.QUEUED, SlotState.DONE):
        stage.in_state(state)
    stage.queued(job, stage.slot(job, ago=3600))
    row = job_row(slotqueue, redis_url)
    assert (row["open"], row["overdue"], row["dead"]) == (2, 1, 2)
    assert row["last_state"] == "dead"
    assert row["last_key"].startswith("ran:rollup:")
    line = slotqueue("status", "--redis", redis_url).stdout.splitlines()[1]
    assert " ".join(line.split()[-4:]) == "2 1 2 yes"


def test_a_pause_is_told_with_its_end(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage, hourly_job())
    until = stage.now() // 1000 * 1000 + HOUR
    stage.pause(until=until)
    row = job_row(slotqueue, redis_url)
    assert row["is_paused"]
    assert row["paused_until"] == from_ms(until).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f"paused until {row['paused_until']}" in slotqueue("status", "--redis", redis_url).stdout
    stage.pause("*")
    assert job_row(slotqueue, redis_url)["paused_until"] is None
    stage.redis.delete("ran:pauses")
    said = slotqueue("pause", "rollup", "--redis", redis_url, "--why", "migration")
    assert said.exit_code == 0, said.output
    row = job_row(slotqueue, redis_url)
    assert (bool(row["paused_by"]), row["paused_why"]) == (True, "migration")
    assert f"paused by {row['paused_by']}: migration" in slotqueue("status", "--redis", redis_url).stdout
    stage.redis.delete("ran:pauses")
    stage.pause(until=stage.now() - 1)
    assert not job_row(slotqueue, redis_url)["is_paused"]


def test_a_scheduler_that_has_stopped_firing_is_seen(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage, hourly_job(), since=stage.now() - DAY, decided=stage.now() - 5 * HOUR)
    row = job_row(slotqueue, redis_url)
    since = datetime.fromisoformat(row["undecided_since"])
    assert timedelta(hours=4) <= datetime.now(UTC) - since < timedelta(hours=5, minutes=1)
    result = slotqueue("status", "--redis", redis_url)
    assert f"undecided since {row['undecided_since']}" in result.stdout
    assert result.stderr.startswith("1 job with slots that nobody has decided; a replica was last seen at ")


def test_jitter_is_no_delay(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    job = hourly_job(schedule=Every(minutes=10), jitter=20 * 60)
    register(stage, job, since=stage.now() - DAY, decided=stage.now() - 15 * MINUTE)
    assert job_row(slotqueue, redis_url)["undecided_since"] is None


def test_a_removed_job_is_shown_only_while_something_is_left_of_it(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    now = stage.now()
    stage.redis.hset("ran:jobs", mapping={"rollup": f"v1:{now - DAY}:{now - HOUR}:0", "": f"{now}:{HOUR}"})
    assert slotqueue("status", "--redis", redis_url).stdout == "no job is known\n"
    stage.queued()
    row = job_row(slotqueue, redis_url)
    assert (row["is_in_force"], row["open"], row["next_fire"], row["task"]) == (False, 1, None, "")
    assert slotqueue("status", "--redis", redis_url).stdout.splitlines()[1].endswith("removed")


def test_a_schedule_of_another_kind_needs_its_application(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    class Sunset(Every):
        def __str__(self) -> str:
            return "sunset"

    register(stage, hourly_job(schedule=Sunset(hours=1)))
    row = job_row(slotqueue, redis_url)
    assert (row["schedule"], row["says"], row["next_fire"]) == ("sunset", "sunset", None)


def test_an_unknown_job_is_2_and_near_names_are_told(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage, hourly_job())
    result = slotqueue("status", "--redis", redis_url, "--job", "rolup")
    assert result.exit_code == 2
    assert result.stderr.endswith("in the namespace 'ran'; did you mean 'rollup'?\n")


def test_json_cannot_be_watched(slotqueue: Slotqueue, redis_url: str) -> None:
    for verb in ("status", "slots", "replicas", "workers"):
        result = slotqueue(verb, "--redis", redis_url, "--json", "--watch", "1")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "choose one of them" in result.stderr


def test_watching_asks_again_until_it_is_stopped(start: Start, stage: Stage, redis_url: str) -> None:
    watching = start("status", "--redis", redis_url, "--watch", "0.2")
    watching.wait_for("no job is known")
    register(stage, hourly_job())
    watching.wait_for("every 1 h")
    assert watching.stop(2)[0] == 130
    assert watching.err == ""


def test_without_redis_each_is_3(slotqueue: Slotqueue) -> None:
    for verb in ("status", "replicas", "workers"):
        result = slotqueue(verb, "--redis", "redis://127.0.0.1:1/0")
        assert result.exit_code == 3, verb


def test_asking_changes_nothing(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage, hourly_job())
    stage.running()
    before = stage.snapshot()
    for verb in ("status", "replicas", "workers"):
        assert slotqueue(verb, "--redis", redis_url).exit_code == 0
    assert stage.snapshot() == before


# ---- replicas and workers


async def test_a_replica_says_since_when_it_is_up_and_what_it_knows(redis_url: str) -> None:
    slots = SlotQueue(redis_url, enqueuer=Fake(), replica="web")
    for name in ("a", "b"):
        slots.add(name, Every(hours=1), on_crash="skip")
    await slots.tick()
    (found,) = await slots.ops.replicas()
    assert found.id.startswith("web-")
    assert (found.jobs, found.is_silent) == (2, False)
    assert found.up_since is not None
    assert timedelta() <= found.last_tick - found.up_since < timedelta(seconds=30)
    assert abs(found.clock_offset) < 1
    assert found.version
    await slots.close()


def test_a_silent_replica_is_marked_and_the_clock_is_told(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    now = stage.now()
    about = json.dumps({"host": "web", "pid": 7, "slotqueue": "0.1.0", "clock_offset_ms": -2500, "jobs": 3})
    stage.redis.hset("ran:replicas", mapping={"web-7-1": f"{now - HOUR} {about}", "r1": f"{now} damaged"})
    found = {each["id"]: each for each in asked(slotqueue, redis_url, "replicas")}
    assert (found["web-7-1"]["is_silent"], found["web-7-1"]["clock_offset"]) == (True, -2.5)
    assert (found["r1"]["is_silent"], found["r1"]["up_since"], found["r1"]["pid"]) == (False, None, 0)
    lines = slotqueue("replicas", "--redis", redis_url).stdout.splitlines()
    assert lines[2].startswith("web-7-1")
    assert "2.5 s behind" in lines[2]
    assert lines[2].endswith("silent: killed, hung or cut off from Redis")


def test_a_worker_tells_its_tasks(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    assert slotqueue("workers", "--redis", redis_url).stdout.startswith("no guarded worker is in the registry")
    about = json.dumps({"host": "w", "pid": 8, "worker": "arq", "queue": "arq:queue", "tasks": ["arq:a", "arq:b"]})
    stage.run(stage.verbs.enlist(Process("w-8-1", about, tasks=("arq:a", "arq:b"))))
    (found,) = asked(slotqueue, redis_url, "workers")
    assert (found["id"], found["system"], found["queue"]) == ("w-8-1", "arq", "arq:queue")
    assert (found["tasks"], found["is_silent"]) == (["arq:a", "arq:b"], False)
    assert "arq:a, arq:b" in slotqueue("workers", "--redis", redis_url).stdout
    stage.redis.hset("ran:workers", "w-8-1", f"{stage.now() - SILENT_MS - 1} {about}")
    assert slotqueue("workers", "--redis", redis_url).stdout.endswith("silent: killed, hung or cut off from Redis\n")


async def test_who_has_been_silent_for_a_minute_is_silent_to_all_who_ask(stage: Stage, redis_url: str) -> None:
    site = Site.at(redis_url)
    for name in ("replicas", "workers"):
        stage.redis.delete(f"ran:{name}")
        stage.redis.hset(f"ran:{name}", "gone", f"{stage.now() - SILENT_MS - 1} {{}}")
    stage.redis.zadd("ran:tasks", {"arq:a": stage.now() - SILENT_MS - 1})
    seen = await observe(site)
    assert (seen.replicas, seen.workers) == (0, 0)
    assert [each.is_silent for each in (*await replicas(site), *await workers(site))] == [True, True]
    assert not (await health(site, host="")).is_well
    assert "No replica is up" in await replicas_note(site)
    assert any("the last guarded worker was seen" in each.text for each in (await check(site)).findings)
    for name in ("replicas", "workers"):
        stage.redis.hset(f"ran:{name}", "here", f"{stage.now() - SILENT_MS // 2} {{}}")
    seen = await observe(site)
    assert (seen.replicas, seen.workers) == (1, 1)
    await site.close()


def test_where_none_has_come_it_says_so(slotqueue: Slotqueue, redis_url: str) -> None:
    assert slotqueue("replicas", "--redis", redis_url).stdout.startswith("no replica is in the registry")


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_slots_are_filtered_by_time(slotqueue: Slotqueue, stage: Stage, redis_url: str, option: str) -> None:
    job = hourly_job()
    register(stage, job)
    old, new = (stage.claimed(job, stage.slot(job, ago=ago)).key for ago in (7200, 60))
    found = asked(slotqueue, redis_url, "slots", option, "1h")
    assert [each["key"] for each in found] == [new if option == "--since" else old]
    found = asked(slotqueue, redis_url, "slots", option, "1h", "--state", "claimed")
    assert [each["key"] for each in found] == [new if option == "--since" else old]


def test_a_range_that_ends_before_it_begins_is_2(slotqueue: Slotqueue, redis_url: str) -> None:
    result = slotqueue("slots", "--redis", redis_url, "--since", "1h", "--until", "2h")
    assert result.exit_code == 2
    assert "is later than" in result.stderr
    result = slotqueue("slots", "--redis", redis_url, "--since", "soon")
    assert "'soon' is no instant; one looks like 24h, 90min or 2026-10-25T00:30Z" in result.stderr


def test_an_empty_namespace_is_1_and_an_application_shows_its_jobs_all_the_same(
    slotqueue: Slotqueue, write_app: Callable[..., None], redis_url: str
) -> None:
    result = slotqueue("status", "--redis", redis_url, "--namespace", "rann")
    said = "no job is known in the namespace 'rann'; no replica has registered there\n"
    assert (result.exit_code, result.stdout) == (1, said)
    write_app('slots.add("rollup", Every(hours=1))\n', redis_url)
    result = slotqueue("status", "app:slots")
    assert (result.exit_code, result.stderr) == (0, "no replica is up\n")
    assert "never registered" in result.stdout
    row = json.loads(slotqueue("status", "app:slots", "--job", "rollup", "--json").stdout)["jobs"][0]
    assert (row["schedule"], row["is_registered"], row["undecided_since"]) == ("every 3600s", False, None)
    assert row["next_fire"] is not None
