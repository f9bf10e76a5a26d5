"""`slotqueue show`: it explains where a slot stands or how it ended, and why there is none; from Redis alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from slotqueue import Every
from slotqueue.answers import Gap, Known, Offer, Run, Word
from slotqueue.protocols import Process
from slotqueue.slots import Slot, SlotState, from_ms, key_at
from slotqueue.words import instant
from tests.cli.conftest import Slotqueue
from tests.store.stage import DAY, EPOCH_VALUE, HOUR, NAMESPACE, Stage

WriteApp = Callable[..., None]
ROLLUP = 'slots.add("rollup", Every(hours=1))\n'

EXPLAINED = {
    SlotState.CLAIMED: "It is claimed, and its first enqueue is under way or was refused. Unless something happens",
    SlotState.HELD: "It is won, and held while another slot of its job is in the way: ran:rollup:",
    SlotState.QUEUED: "no worker has begun it. A guarded worker with the task arq:do_rollup was last seen",
    SlotState.RUNNING: "The worker w1 has been running it since",
    SlotState.POSTPONED: "The worker w1 handed it back; the worker system is to run it again",
    SlotState.FAILED: "The worker system gave it up; 1 attempt of 5 spent, another one is due.",
    SlotState.SENT: "nobody reports what became of it: no guarded worker had registered the task arq:do_rollup.",
    SlotState.DONE: "It was done at",
    SlotState.DEAD: "failed in w1 (1 attempt of 5 spent). Only an operator brings it back: `slotqueue retry`.",
    SlotState.LOST: "its worker w1 fell silent. A repeat would be worse. Only an operator brings it back",
    SlotState.SKIPPED: "paused. It has not run.",
    SlotState.MISSED: "nothing took it up during its retention. It has not run.",
}


def told(slotqueue: Slotqueue, url: str, key: str) -> dict[str, Any]:
    result = slotqueue("show", key, "--redis", url, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def says(slotqueue: Slotqueue, url: str, key: str) -> str:
    return str(told(slotqueue, url, key)["says"])


def happened(slotqueue: Slotqueue, url: str, key: str) -> list[str]:
    return [moment["what"] for moment in told(slotqueue, url, key)["timeline"]]


def hourly(ago: int, name: str = "rollup", namespace: str = NAMESPACE) -> str:
    """The key of a whole hour, so many hours ago; below zero ahead."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return key_at(namespace, name, hour - timedelta(hours=ago))


def register(stage: Stage, *, since: int = 0, decided: int = 0, name: str = "rollup") -> None:
    known = Known(name, "v1", since, decided)
    stage.run(stage.verbs.register(Process("r1"), [known], epoch=EPOCH_VALUE, is_last=True))


# ---- slots on record


@pytest.mark.parametrize("state", list(SlotState))
def test_each_state_is_explained_in_text_and_json(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, state: SlotState
) -> None:
    slip, _ = stage.in_state(state)
    result = slotqueue("show", slip.key, "--redis", redis_url)
    assert result.exit_code == 0
    first, second, *rest = result.stdout.splitlines()
    assert first == f"{slip.key}: {state.value}"
    assert EXPLAINED[state] in second
    assert any(line.endswith("due: its fire time") for line in rest)
    found = told(slotqueue, redis_url, slip.key)
    assert (found["state"], found["key"], found["job"]) == (state.value, slip.key, "rollup")
    assert EXPLAINED[state] in found["says"]
    assert (found["deadline"] is not None) is state.is_open


def test_overlap_names_the_slot_in_the_way(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    other = stage.claimed(stage.job(overlap="hold", max_held=1))
    job = stage.job(overlap="hold", max_held=1)
    held, skipped = stage.held(job), stage.slot(job)
    stage.claim(Offer(job, skipped))
    found = told(slotqueue, redis_url, held.key)
    assert (found["behind"], found["enqueues"], found["state"]) == (other.key, 0, "held")
    assert f"held while another slot of its job is in the way: {other.key}." in found["says"]
    assert (found["terms"]["overlap"], found["terms"]["max_held"]) == ("hold", 1)
    assert f"overlap: 1 slots were held already, and {other.key} was claimed" in says(slotqueue, redis_url, skipped.key)
    text = slotqueue("show", skipped.key, "--redis", redis_url).stdout
    assert f"in the way  {other.key}" in text.replace("   ", "")
    stage.lose(other.key)
    assert stage.swept(held.key).word is Word.ENQUEUE
    assert told(slotqueue, redis_url, held.key)["enqueues"] == 1
    assert happened(slotqueue, redis_url, held.key)[-2:] == [f"held: {other.key} was claimed", "let go by r2, was held"]
    listed = slotqueue("slots", "--redis", redis_url, "--job", "rollup", "--state", "skipped").stdout
    assert other.key in listed


def test_a_slot_that_was_claimed_ahead_says_so_before_it_is_due(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    job = stage.job()
    slot = stage.slot(job, ago=-5)
    stage.claim(Offer(job, slot), ahead_ms=60_000)
    claimed, due = "claimed by r1, ahead of its time", "due: its fire time"
    assert happened(slotqueue, redis_url, slot.key) == [claimed, due]
    stage.guard(job)
    stage.confirm(stage.slip(job, slot))
    assert happened(slotqueue, redis_url, slot.key) == [claimed, "the queue accepted the message", due]
    assert told(slotqueue, redis_url, slot.key)["late"] == 0


def test_a_done_slot_tells_its_whole_story_in_order(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    run = stage.running()
    stage.finish(run)
    found = told(slotqueue, redis_url, run.slip.key)
    words = [moment["what"].split(" by ")[0].split(",")[0] for moment in found["timeline"]]
    assert words == ["due: its fire time", "claimed", "the queue accepted the message", "begun", "done: finished"]
    assert [moment["at"] for moment in found["timeline"]] == sorted(moment["at"] for moment in found["timeline"])
    assert found["replica"] == "r1"
    assert found["last_run"]["worker"] == "w1"
    assert found["late"] >= 1
    assert min(found["queue_time"], found["run_time"]) >= 0
    assert set(found["lives"]) == {"claim", "done marker", "record"}


def test_a_take_over_and_a_second_run_are_told_in_order(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    first = stage.running(stage.job(on_crash="complete"))
    stage.pass_instant(int(stage.record(first.slip.key)["began"]))  # no lease passes within one ms
    slip = stage.enqueued_again(first.slip.key)
    stage.confirm(slip)
    second = stage.begin(slip, worker="w2")
    assert isinstance(second, Run)
    stage.finish(second)
    story = happened(slotqueue, redis_url, slip.key)
    assert story[2:] == [
        "begun by the worker w1",
        "the worker w1 fell silent, attempt 1",
        "taken over by r2, was running",
        "the queue accepted the message",
        "begun by the worker w2",
        story[-1],
    ]
    assert story[-1].startswith("done: finished by w2")
    assert told(slotqueue, redis_url, slip.key)["enqueues"] == 2


def test_what_one_millisecond_saw_is_told_in_order(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    first = stage.running(stage.job(on_crash="complete", on_failure="again"))
    stage.pass_instant(int(stage.record(first.slip.key)["began"]))
    slip = stage.enqueued_again(first.slip.key)
    stage.confirm(slip)
    second = stage.begin(slip, worker="w2")
    assert isinstance(second, Run)
    stage.fail(second, "ValueError: no")
    record = stage.record(slip.key)
    now = record["past.1"].split(",")[0]  # when the first run's lease was found to have passed
    stage.redis.hset(
        f"{slip.key}:record",
        mapping={
            "queued": now,
            "began": now,
            "past.2": f"{now} {record['past.2'].partition(' ')[2]}",
            "past.3": f"{now},{now} {record['past.3'].partition(' ')[2]}",
        },
    )
    assert happened(slotqueue, redis_url, slip.key)[2:] == [
        "begun by the worker w1",
        "the worker w1 fell silent, attempt 1",
        "taken over by r2, was running",
        "the queue accepted the message",
        "begun by the worker w2",
        "failed in w2, attempt 2 of 5: ValueError: no",
    ]


def test_a_slot_claimed_ahead_is_due_before_a_run_of_the_same_millisecond(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    run = stage.running()
    fire = stage.record(run.slip.key)["fire"]
    stage.redis.hset(f"{run.slip.key}:record", mapping={"claimed": int(fire) - 15, "queued": fire, "began": fire})
    assert [line.partition(" ")[0] for line in happened(slotqueue, redis_url, run.slip.key)] == [
        "claimed",
        "due:",
        "the",
        "begun",
    ]


def test_a_message_was_accepted_before_a_worker_rejected_it(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.queued(stage.job(on_failure="again"))
    stage.reject(slip.key, slip.n)
    stage.redis.hset(f"{slip.key}:record", "queued", stage.record(slip.key)["past.1"].split(" ")[0])  # within one ms
    assert happened(slotqueue, redis_url, slip.key)[-2].startswith("the queue accepted")


def test_every_run_tells_when_it_began(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    first = stage.running(stage.job(on_failure="again"))
    began = [int(stage.record(first.slip.key)["began"])]
    stage.pass_instant(began[0])
    stage.postpone(first)
    for worker in ("w2", "w3"):
        stage.pass_instant(stage.now())
        run = stage.begin(first.slip, worker=worker, from_fence="any")
        assert isinstance(run, Run)
        began.append(int(stage.record(first.slip.key)["began"]))
        stage.pass_instant(began[-1])
        stage.fail(run, "ValueError: no") if worker == "w2" else stage.finish(run)
    told_begins = [
        (moment["at"], moment["what"].rpartition(" ")[2])
        for moment in told(slotqueue, redis_url, first.slip.key)["timeline"]
        if moment["what"].startswith("begun by")
    ]
    story = happened(slotqueue, redis_url, first.slip.key)
    ends = [each for each in story if each.startswith(("handed back", "failed in", "done"))]
    assert ends[:2] == ["handed back by w1: retry", "failed in w2, attempt 1 of 5: ValueError: no"]
    assert told_begins == [(instant(at), worker) for at, worker in zip(began, ("w1", "w2", "w3"), strict=True)]


def test_a_refused_enqueue_is_told_with_its_error(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.claimed()
    stage.release(slip, "the queue is full")
    assert "the queue refused it: the queue is full" in happened(slotqueue, redis_url, slip.key)
    assert says(slotqueue, redis_url, slip.key).endswith("Its last error: the queue is full")


def test_a_queued_slot_without_any_worker_says_so(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.queued()
    stage.redis.delete("ran:tasks")
    assert "No guarded worker with the task arq:do_rollup is known." in says(slotqueue, redis_url, slip.key)


def test_a_queued_slot_that_may_not_repeat_ends_as_missed(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.queued(stage.job(on_crash="skip"))
    assert "any replica's sweep gives it up as missed after" in says(slotqueue, redis_url, slip.key)
    slip = stage.queued(stage.job(on_crash="complete"))
    assert "any replica's sweep enqueues it again after" in says(slotqueue, redis_url, slip.key)


@pytest.mark.parametrize("on_crash, outcome", [("complete", "makes another attempt"), ("skip", "gives it up as lost")])
def test_a_passed_lease_says_what_comes(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, on_crash: str, outcome: str
) -> None:
    run = stage.running(stage.job(on_crash=on_crash))
    stage.pass_deadline(run.slip.key)
    said = says(slotqueue, redis_url, run.slip.key)
    assert "Its lease has passed:" in said
    assert outcome in said


def test_more_events_than_are_kept_are_counted(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.claimed()
    for _ in range(25):
        stage.release(slip, "full")
    assert happened(slotqueue, redis_url, slip.key)[2] == "(5 older events not kept)"


def test_damage_is_told_and_is_1(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.claimed()
    stage.redis.hset(f"{slip.key}:record", "state", "floating")
    result = slotqueue("show", slip.key, "--redis", redis_url)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == f"{slip.key}: damaged"
    assert "the record has a state that this version does not know: 'floating'" in result.stdout


@pytest.mark.parametrize(
    "field, value",
    [
        ("terms", "c d"),
        ("terms", ""),
        ("terms", "c d a x 0 5 1 1 1 1 1"),
        ("fire", ""),
        ("claimed", "9" * 30),
        ("n", "-1"),
        ("state", ""),
        ("spent", "1.5"),
    ],
)
def test_no_damage_of_a_record_raises(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, field: str, value: str
) -> None:
    slip = stage.claimed()
    stage.redis.hset(f"{slip.key}:record", field, value)
    result = slotqueue("show", slip.key, "--redis", redis_url)
    assert result.exit_code == 1
    assert "Its keys in Redis are damaged: " in result.stdout


@pytest.mark.parametrize("suffix", ["", ":done", ":record"])
def test_keys_of_another_type_are_damage(slotqueue: Slotqueue, stage: Stage, redis_url: str, suffix: str) -> None:
    slip = stage.claimed()
    stage.redis.delete(f"{slip.key}{suffix}")
    stage.redis.rpush(f"{slip.key}{suffix}", "a list")
    result = slotqueue("show", slip.key, "--redis", redis_url)
    assert result.exit_code == 1
    assert "WRONGTYPE" in result.stdout


# ---- no record


def test_an_unknown_job_names_near_ones(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage)
    said = says(slotqueue, redis_url, hourly(1, "rolup"))
    assert said == "No replica has made a job 'rolup' known in the namespace 'ran'; did you mean 'rollup'?"


def test_a_slot_to_come_is_not_due_yet(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage)
    said = says(slotqueue, redis_url, hourly(-2))
    assert said.startswith("It is not due yet: its fire time comes in 1 h")
    assert "only its application knows" in said


def test_a_missed_gap_tells_from_when_to_when_and_why(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage)
    now = stage.now()
    gap = Gap(stage.job(), now - 5 * HOUR, now - HOUR, "older than the lookback")
    stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))
    said = says(slotqueue, redis_url, hourly(3))
    assert said.startswith("It was missed: no replica with its job was up and in touch with Redis between ")
    assert "and nobody decided the slots after " in said
    assert "(older than the lookback). Recorded at " in said
    found = told(slotqueue, redis_url, hourly(3))
    assert (found["state"], found["no_record"]) == (None, "missed")
    assert found["missed"]["after"] == instant(now - 5 * HOUR)
    assert found["missed"]["until"] == instant(now - HOUR)
    assert found["missed"]["reason"] == "older than the lookback"


@pytest.mark.parametrize("key, why", [(hourly(-2), "not_due"), (hourly(1, "rolup"), "unknown_job")])
def test_as_json_each_absence_has_a_word(
    slotqueue: Slotqueue, stage: Stage, redis_url: str, key: str, why: str
) -> None:
    register(stage)
    assert told(slotqueue, redis_url, key)["no_record"] == why


def test_as_json_the_terms_are_words_and_seconds(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    terms = told(slotqueue, redis_url, stage.claimed().key)["terms"]
    assert (terms["on_crash"], terms["on_failure"], terms["overlap"]) == ("complete", "dead", "allow")
    assert (terms["lease"], terms["requeue_after"], terms["expires"]) == (60, 300, None)


def test_a_slot_from_before_the_schedule_was_known_is_not_owed(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    register(stage)
    found = told(slotqueue, redis_url, hourly(5))
    assert "nothing is owed from before; if the job ran before then, Redis may have lost its data" in found["says"]
    assert found["no_record"] == "no_record"


def test_a_record_has_expired_only_where_the_slot_is_older_than_records_are_kept(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    register(stage, since=stage.now() - 200 * DAY, decided=stage.now() - HOUR)
    old, young = told(slotqueue, redis_url, hourly(24 * 100)), told(slotqueue, redis_url, hourly(48))
    assert old["no_record"] == "expired"
    assert old["says"].startswith("Its record has expired: it is kept for 90 d after the end, and it was due 100 d")
    assert young["no_record"] == "no_record"
    assert young["says"].startswith("There is no record, although everything up to ")
    assert "it is not a slot of the schedule, or its record has expired or is lost." in young["says"]


def test_with_the_application_the_history_of_the_job_decides_what_has_expired(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    register(stage, since=stage.now() - 200 * DAY, decided=stage.now() - HOUR)
    write_app('slots.add("rollup", Every(hours=1), history=2 * 86400)\n', redis_url)
    old, young = (json.loads(slotqueue("show", "app:slots", hourly(ago), "--json").stdout) for ago in (72, 24))
    assert (old["no_record"], young["no_record"]) == ("expired", "no_record")
    assert "Redis may have lost its data" in young["says"]


def test_a_done_marker_outlives_the_record(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    run = stage.running()
    stage.finish(run)
    stage.redis.delete(f"{run.slip.key}:record")
    assert says(slotqueue, redis_url, run.slip.key).startswith("It was done, finished by w1; its record is gone: ")


def test_a_claim_whose_record_is_gone_names_its_owner(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    slip = stage.claimed()
    stage.redis.delete(f"{slip.key}:record")
    assert says(slotqueue, redis_url, slip.key).startswith("It was claimed by r1; its record is gone")


def test_a_due_slot_that_nobody_decided_says_whether_replicas_are_up(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    register(stage, since=stage.now() - DAY)
    said = says(slotqueue, redis_url, hourly(1))
    assert "nobody has decided it. A replica was last seen " in said
    assert "(they say so every 5 min): its next pass decides the slot." in said
    seen, _, about = stage.redis.hget("ran:replicas", "r1").partition(" ")
    stage.redis.hset("ran:replicas", "r1", f"{int(seen) - HOUR} {about}")
    assert "No replica was seen lately: the last one 1 h ago, and they" in says(slotqueue, redis_url, hourly(1))
    stage.run(stage.verbs.leave("r1"))
    assert "none has come, or all have left; one last registered" in says(slotqueue, redis_url, hourly(1))


def test_a_job_that_no_replica_knows_any_more_says_so(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    now = stage.now()
    register(stage)
    stage.redis.hset("ran:jobs", "rollup", f"v1:{now - DAY}:{now - HOUR}:0")
    assert "and none has known the job since" in says(slotqueue, redis_url, hourly(1))


def test_a_paused_job_says_so(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    register(stage)
    stage.pause()
    assert "The job is paused: slots that fall due are skipped." in says(slotqueue, redis_url, hourly(-2))


def test_with_the_application_an_instant_between_is_no_slot(
    write_app: WriteApp, slotqueue: Slotqueue, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    at = from_ms(0).replace(year=2026, month=10, day=2, hour=3, minute=7)
    result = slotqueue("show", "app:slots", key_at("ran", "rollup", at))
    assert result.exit_code == 0
    assert (
        "It is not a slot of this schedule (every 1 h): it does not fire at 2026-10-02T03:07:00Z. "
        "The fire times next to it are 2026-10-02T03:00:00Z and 2026-10-02T04:00:00Z."
    ) in result.stdout


def test_without_code_the_registry_tells_the_schedule(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    known = Known("rollup", "v1", stage.now() - DAY, 0, str(Every(hours=1)), stage.job().about)
    stage.run(stage.verbs.register(Process("r1"), [known], epoch=EPOCH_VALUE, is_last=True))
    due = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    said = says(slotqueue, redis_url, key_at("ran", "rollup", due + timedelta(minutes=7)))
    assert said.startswith("It is not a slot of this schedule (every 1 h): it does not fire at ")
    said = says(slotqueue, redis_url, key_at("ran", "rollup", due))
    assert "nobody has decided it" in said
    assert "only its application knows" not in said


def test_a_slot_is_judged_by_the_schedule_that_was_in_force(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    now = stage.now()
    stage.redis.hset("ran:jobs", mapping={"rollup": f"v2:{now - HOUR}:{now}:0", "": f"{now}:0"})
    stage.redis.hset("ran:past", "rollup", f"v1:{now - 9 * HOUR}:{now - HOUR}")
    stage.redis.hset("ran:schedules", mapping={"v1": "every 60s", "v2": "every 3600s"})
    before = from_ms(now - 5 * HOUR).replace(minute=7, second=0, microsecond=0)
    since = from_ms(now - 30 * 60_000).replace(second=30, microsecond=0)
    assert "nobody has decided it" in says(slotqueue, redis_url, key_at("ran", "rollup", before))
    assert "not a slot of this schedule (every 1 h)" in says(slotqueue, redis_url, key_at("ran", "rollup", since))


def test_with_the_application_a_coming_slot_is_certain(
    write_app: WriteApp, slotqueue: Slotqueue, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    result = slotqueue("show", "app:slots", hourly(-2))
    assert "It is not due yet" in result.stdout
    assert "only its application knows" not in result.stdout


def test_an_operators_slot_without_a_record_is_told_from_the_schedules(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    register(stage)
    assert "an operator made it" in says(slotqueue, redis_url, f"{hourly(1)}~t42")


# ---- what it is asked


def test_a_key_is_found_however_it_is_written(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    job = stage.job("a:b")
    at = from_ms(stage.now() - HOUR).replace(second=0, microsecond=0)
    slip = stage.claimed(job, Slot(key_at(NAMESPACE, "a:b", at), "a:b", at, at - job.period))
    text = at.strftime("%Y-%m-%dT%H:%M")
    ahead = at.astimezone(timezone(timedelta(hours=2))).isoformat()
    for words in (
        [slip.key],
        [f"{slip.key}:00"],
        [f"{slip.key}Z"],
        [f"{slip.key}:00.000z"],
        [f"{slip.key}:00+00:00"],
        ["a:b", text],
        ["a:b", f"{text}:00Z"],
        ["a:b", ahead],
    ):
        result = slotqueue("show", *words, "--redis", redis_url)
        assert result.stdout.splitlines()[0] == f"{slip.key}: claimed", (words, result.output)
    assert slotqueue("show", f"{slip.key}:30Z", "--redis", redis_url).stdout.startswith(f"{slip.key}:30: ")


def test_a_job_and_an_instant_may_follow_the_application(
    write_app: WriteApp, slotqueue: Slotqueue, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    result = slotqueue("show", "app:slots", "rollup", "2026-10-02T03:07:00Z")
    assert result.stdout.startswith("ran:rollup:2026-10-02T03:07: not on record")


@pytest.mark.parametrize("key", ["foo", "ran:rollup", "ran:rollup:2026-13-40T03:00", "ran:rollup:2026-10-02"])
def test_a_bad_key_is_2_and_shows_a_good_one(slotqueue: Slotqueue, redis_url: str, key: str) -> None:
    result = slotqueue("show", key, "--redis", redis_url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (f"Error: {key!r} is no slot key; one looks like 'ran:rollup:2026-10-02T03:00' (UTC)\n")


def test_a_key_tells_its_own_namespace_unless_another_is_given(
    slotqueue: Slotqueue, redis_url: str, write_app: WriteApp
) -> None:
    key = hourly(1, namespace="mine")
    assert "in the namespace 'mine'" in says(slotqueue, redis_url, key)
    for args in (["--namespace", "ran", "--redis", redis_url], []):
        write_app("", redis_url)
        result = slotqueue("show", *([] if args else ["app:slots"]), key, *args)
        assert result.exit_code == 2
        assert "is of the namespace 'mine', and this is 'ran'" in result.stderr


def test_a_key_alone_says_where_it_could_be_looked_up(slotqueue: Slotqueue) -> None:
    result = slotqueue("show", hourly(1))
    assert result.exit_code == 2
    assert "say where to look" in result.stderr


def test_a_key_with_blanks_needs_quotes(slotqueue: Slotqueue, redis_url: str) -> None:
    result = slotqueue("show", "ran:weekly", "report:2026-10-02T03:00", "x:2026-10-02T03:00", "--redis", redis_url)
    assert result.exit_code == 2
    assert "a key with blanks needs quotes" in result.stderr


def test_without_redis_it_is_3(slotqueue: Slotqueue) -> None:
    result = slotqueue("show", hourly(1), "--redis", "redis://:hunter2@127.0.0.1:1/0")
    assert result.exit_code == 3
    assert result.stderr.startswith("Error: Redis at redis://:***@127.0.0.1:1/0: ")


def test_it_changes_nothing(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    run = stage.running()
    before = stage.snapshot()
    slotqueue("show", run.slip.key, "--redis", redis_url)
    slotqueue("slots", "--redis", redis_url)
    assert stage.snapshot() == before
