"""`slotqueue check`: it finds what would go wrong, starts nothing and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotqueue.protocols import Process
from tests.cli.conftest import Slotqueue
from tests.servers import Server
from tests.store.stage import HOUR, Stage

WriteApp = Callable[..., None]
JOBS = 'slots.add("nightly", Cron("0 3 * * *", tz="Europe/Berlin"))\nslots.add("digest", Every(minutes=5))\n'


def findings(slotqueue: Slotqueue, *args: str) -> tuple[int, list[tuple[str, str, str]]]:
    result = slotqueue("check", *args, "--json")
    said: dict[str, Any] = json.loads(result.stdout)
    assert said["is_sound"] is (result.exit_code == 0)
    return result.exit_code, [(each["severity"], each["about"], each["text"]) for each in said["findings"]]


@pytest.fixture
def sound_stage(stage: Stage) -> Iterator[Stage]:
    """A Redis about whose settings there is nothing to say."""
    stage.redis.config_set("appendonly", "yes")
    yield stage
    stage.redis.config_set("appendonly", "no")


def test_a_sound_application_with_its_workers_is_0(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    sound_stage.run(sound_stage.verbs.enlist(Process("w1", tasks=("fake:nightly", "fake:digest"))))
    result = slotqueue("check", "app:slots")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["job", "schedule", "task", "guarded", "fires", "next", "(UTC)"]
    assert "nightly  cron 0 3 * * * Europe/Berlin  fake:nightly  yes" in result.stdout
    assert result.stdout.splitlines()[-1] == "0 problems, 0 warnings, 0 notes"


def test_a_task_that_no_known_worker_has_is_a_problem_with_a_hint(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    sound_stage.run(sound_stage.verbs.enlist(Process("w1", tasks=("fake:nightly", "fake:digests"))))
    code, found = findings(slotqueue, "app:slots")
    assert code == 1
    assert found == [
        (
            "problem",
            "job 'digest'",
            "no guarded fake worker has the task 'digest': nobody would report on its slots; did you mean 'digests'?",
        )
    ]


def test_unguarded_workers_are_a_warning(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    code, found = findings(slotqueue, "app:slots")
    assert code == 0
    assert [(severity, about) for severity, about, _ in found] == [("warning", "workers")]
    assert found[0][2].startswith("no guarded fake worker is known for 2 jobs, so their slots are sent once")


def test_overlap_without_guarded_workers_is_a_warning(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS.replace("minutes=5)", 'minutes=5), overlap="hold"'), redis_url)
    _, found = findings(slotqueue, "app:slots")
    assert [(severity, about) for severity, about, text in found if "`overlap` keeps no two apart" in text] == [
        ("warning", "job 'digest'")
    ]
    sound_stage.run(sound_stage.verbs.enlist(Process("w1", tasks=("fake:nightly", "fake:digest"))))
    assert not any("overlap" in text for *_, text in findings(slotqueue, "app:slots")[1])


def test_without_guarded_arq_workers_the_likely_cause_is_named(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app("", redis_url)
    path = Path("app.py")
    path.write_text(path.read_text().replace('kind = "fake"', 'kind = "arq"') + JOBS)
    _, found = findings(slotqueue, "app:slots")
    assert "the settings class lacks `@slots.worker`" in found[0][2]


AIMED = 'Fake.place = "localhost:6379/0"\nFake.queue_of = lambda self, job: job.queue or "main"\n'


def enlist(stage: Stage, **about: str) -> None:
    tasks = ("fake:nightly", "fake:digest")
    stage.run(stage.verbs.enlist(Process("w1", json.dumps({"worker": "fake", **about}), tasks)))


def test_a_queue_on_which_no_worker_listens_is_a_problem(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(AIMED + JOBS.replace("minutes=5)", 'minutes=5), queue="quick"'), redis_url)
    enlist(sound_stage, queue="main", redis="127.0.0.1:6379/0")
    code, found = findings(slotqueue, "app:slots")
    assert code == 1
    ((severity, about, text),) = found
    assert (severity, about) == ("problem", "job 'digest'")
    assert text.startswith(
        "no known worker listens on the queue 'quick' that the job is sent to (workers listen on 'main'): "
    )


@pytest.mark.parametrize(
    "place, is_told",
    [
        ("localhost:6379/0", False),
        ("127.0.0.1:6379/0", False),
        ("redis.internal:6379/0", False),
        ("localhost:6379/1", True),
        ("localhost:6380/0", True),
        ("/run/redis.sock/0", False),
        ("", False),
    ],
)
def test_another_redis_is_a_warning_and_another_name_of_it_is_none(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str, place: str, is_told: bool
) -> None:
    write_app(AIMED + JOBS, redis_url)
    enlist(sound_stage, queue="main", redis=place)
    code, found = findings(slotqueue, "app:slots")
    assert code == 0
    assert [(severity, about) for severity, about, _ in found] == (
        [("warning", "job 'nightly'"), ("warning", "job 'digest'")] if is_told else []
    )


def test_slots_that_wait_in_the_queue_for_too_long_are_a_warning(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app("", redis_url)
    job = sound_stage.job(done_within=60)
    sound_stage.queued(job)
    assert not [text for _, about, text in findings(slotqueue, "app:slots")[1] if about == "workers"]
    late = sound_stage.queued(job, sound_stage.slot(job, 120))
    (text,) = [text for _, about, text in findings(slotqueue, "app:slots")[1] if about == "workers"]
    assert text.startswith(f"1 slot should be done by now, and no worker has begun it ({late.key}, for example)")


def test_a_worker_that_was_silent_for_a_minute_is_told(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    enlist(sound_stage)
    sound_stage.redis.zincrby("ran:tasks", -40_000, "fake:nightly")
    assert findings(slotqueue, "app:slots") == (0, [])
    sound_stage.redis.zincrby("ran:tasks", -30_000, "fake:nightly")
    (found,) = findings(slotqueue, "app:slots")[1]
    assert found[:2] == ("warning", "job 'nightly'")


def test_a_task_that_goes_past_the_guard_is_a_warning_until_only_guarded_workers_are_there(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    old = Process("old", json.dumps({"worker": "fake", "unguarded": {"digest": "it is stubborn"}}), ("fake:nightly",))
    sound_stage.run(sound_stage.verbs.enlist(old))
    ((severity, about, text),) = findings(slotqueue, "app:slots")[1]
    assert (severity, about) == ("warning", "job 'digest'")
    assert text.startswith(
        "the task 'digest' goes past the guard (it is stubborn), so its slots are sent once and nobody"
    )
    enlist(sound_stage)
    assert [about for _, about, _ in findings(slotqueue, "app:slots")[1]] == ["job 'digest'"]
    long_ago = sound_stage.redis.time()[0] * 1000 - HOUR
    sound_stage.redis.hset("ran:workers", "old", f"{long_ago} {old.about}")
    assert findings(slotqueue, "app:slots") == (0, [])


def test_a_period_is_said_with_its_units(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS + 'slots.add("odd", Every(seconds=3605, offset=90))\n')
    out = " ".join(slotqueue("check", "app:slots", "--offline").stdout.split())
    assert "every 5 min fake:digest" in out
    assert "every 1 h 5 s, offset 1 min 30 s fake:odd" in out


def test_workers_that_were_not_seen_for_a_while_are_a_warning(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    sound_stage.run(sound_stage.verbs.enlist(Process("w1", tasks=("fake:nightly", "fake:digest"))))
    sound_stage.redis.zincrby("ran:tasks", -HOUR, "fake:digest")
    code, found = findings(slotqueue, "app:slots")
    assert code == 0
    assert [(severity, about) for severity, about, _ in found] == [("warning", "job 'digest'")]
    assert "was seen 1 h ago" in found[0][2]


def test_settings_of_redis_are_findings(
    write_app: WriteApp, slotqueue: Slotqueue, sound_stage: Stage, redis_url: str
) -> None:
    write_app("", redis_url)
    sound_stage.redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        code, found = findings(slotqueue, "app:slots")
    finally:
        sound_stage.redis.config_set("maxmemory-policy", "noeviction")
    assert code == 0
    assert any(severity == "warning" and about == "redis" and "allkeys-lru" in text for severity, about, text in found)


@pytest.mark.parametrize(
    "line, what",
    [
        ('slots.add("x", Cron("0 3 31 2 *"))', "0 3 31 2 *"),
        ('slots.add("x", Cron("0 3 * * *", tz="Mars/Olympus"))', "Mars/Olympus"),
        ('slots.add("x", Every(hours=1), args=[print])', "job 'x', args: a function does not serialise"),
        ('slots.add("x", Every(hours=1), on_crash="again")', "job 'x', on_crash"),
        ('slots.add("x", Every(hours=1), lokback=1)', "lokback"),
    ],
)
def test_a_wrong_job_is_a_problem_with_its_place(
    write_app: WriteApp, slotqueue: Slotqueue, line: str, what: str
) -> None:
    write_app(f"{line}\n")
    code, found = findings(slotqueue, "app:slots")
    assert code == 1
    ((severity, about, text),) = found
    assert (severity, about) == ("problem", "application")
    assert text.startswith("app.py, line ")
    assert what in text


def test_a_schedule_that_fails_later_on_is_a_problem(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app("""
class Moody(Every):
    fails = False
    def next_after(self, t):
        if Moody.fails:
            raise RuntimeError("not today")
        return super().next_after(t)

slots.add("moody", Moody(minutes=1))
Moody.fails = True
""")
    code, found = findings(slotqueue, "app:slots", "--offline")
    assert code == 1
    assert found == [("problem", "job 'moody'", "schedule: the schedule fails: RuntimeError: not today")]


def test_an_application_without_jobs_is_a_warning(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app()
    assert findings(slotqueue, "app:slots", "--offline") == (
        0,
        [("warning", "application", "it has no jobs; add one with add(...)")],
    )


def test_it_starts_nothing_and_changes_nothing(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    write_app(JOBS, redis_url)
    stage.running()
    before = stage.snapshot()
    result = slotqueue("check", "app:slots")
    assert "enqueuing" not in result.output
    assert stage.snapshot() == before


def test_offline_asks_no_redis(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("check", "app:slots", "--offline")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "0 problems, 0 warnings, 0 notes (Redis was not asked)"


def test_without_redis_it_is_3(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    assert slotqueue("check", "app:slots").exit_code == 3


def test_a_redis_alone_can_be_checked(slotqueue: Slotqueue, own_server: Server) -> None:
    code, found = findings(slotqueue, "--redis", own_server.url)
    assert code == 0
    (text,) = (text for severity, about, text in found if (severity, about) == ("warning", "workers"))
    assert text.startswith("no guarded worker is known in this namespace: no worker was started yet, or the settings")


def test_with_nothing_to_check_it_is_2(slotqueue: Slotqueue) -> None:
    result = slotqueue("check")
    assert result.exit_code == 2
    assert "--redis URL (or SLOTQUEUE_REDIS)" in result.stderr
