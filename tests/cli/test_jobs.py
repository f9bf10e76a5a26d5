"""`slotqueue jobs put`, `list` and `remove`, end to end: with two replicas that run, without code, and wrong input."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slotqueue.protocols import Process
from tests.cli.conftest import FAKE, Slotqueue
from tests.cli.process import Started
from tests.store.registering import hourly_job, register
from tests.store.stage import HOUR, Stage


@pytest.mark.alone  # it counts two seconds
def test_two_replicas_work_by_what_is_put_and_stop_what_is_removed(
    slotqueue: Slotqueue, folder: Path, redis_url: str
) -> None:
    where = ("--redis", redis_url)
    replicas = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "app.py").write_text(FAKE.replace("{url}", redis_url))
        replicas.append(Started(["run", "app:slots"], folder / name, os.environ))
    try:
        for replica in replicas:
            replica.wait_for("ready: 0 jobs")
        began = time.monotonic()
        done = slotqueue("jobs", "put", "digest", "every 1s", "--on-crash", "skip", *where)
        assert done.exit_code == 0, done.output
        assert "stored 'digest' as version " in done.output
        for replica in replicas:
            replica.wait_for("stored jobs changed: 1 put, 0 removed", seconds=2)
        assert time.monotonic() - began < 2
        while not any("enqueuing ran:digest:" in replica.out for replica in replicas):
            assert time.monotonic() - began < 10
            time.sleep(0.02)
        version = json.loads(slotqueue("jobs", "list", "--json", *where).output)[0]["version"]
        done = slotqueue("jobs", "remove", "digest", "--version", str(version), *where)
        assert done.output == "removed 'digest'; none of its slots begins any more\n"
        (row,) = json.loads(slotqueue("status", "--job", "digest", "--json", *where).output)["jobs"]
        assert not row["is_in_force"]
        for replica in replicas:
            replica.wait_for("stored jobs changed: 0 put, 1 removed", seconds=2)
        before = [replica.out for replica in replicas]
        time.sleep(1.1)  # the time of one more slot
        assert [replica.out for replica in replicas] == before
        assert slotqueue("jobs", "list", *where).output == "no job is stored\n"
    finally:
        for replica in replicas:
            replica.close()


def test_what_was_put_is_listed_in_words_and_as_json(slotqueue: Slotqueue, redis_url: str) -> None:
    where = ("--redis", redis_url, "--namespace", "mine")
    words = ("nightly", "cron 0 3 * * * Europe/Berlin", "--task", "roll_up", "--args", '["a", 1]', "--kwargs")
    more = ('{"kind": "short"}', "--enqueuer", "arq", "--on-crash", "complete", "--set", "lookback=0")
    done = slotqueue("jobs", "put", *words, *more, "--set", "requeue-after=null", "--json", *where)
    assert done.exit_code == 0, done.output
    put = json.loads(done.output)
    (listed,) = json.loads(slotqueue("jobs", "list", "--json", *where).output)
    assert listed == put
    assert listed["policy"] == {"on_crash": "complete", "lookback": 0, "requeue_after": None}
    text = slotqueue("jobs", "list", *where).output
    assert 'nightly  cron 0 3 * * * Europe/Berlin  arq:roll_up  "a", 1, kind="short"' in text
    assert slotqueue("jobs", "list", "--redis", redis_url).output == "no job is stored\n", "another namespace"


def test_a_second_put_over_a_version_that_is_gone_is_refused(slotqueue: Slotqueue, redis_url: str) -> None:
    where = ("--on-crash", "skip", "--redis", redis_url)
    assert slotqueue("jobs", "put", "a", "every 1 h", "--version", "0", *where).exit_code == 0
    done = slotqueue("jobs", "put", "a", "every 2 h", "--version", "0", *where)
    assert done.exit_code == 2
    assert "job 'a', version: it is stored already, as version " in done.stderr


def test_with_an_application_its_defaults_count_and_its_enqueuer_checks(
    slotqueue: Slotqueue, write_app: Callable[..., None], redis_url: str
) -> None:
    write_app('slots.add("mine", Every(hours=1))\n', redis_url)
    done = slotqueue("jobs", "put", "app:slots", "digest", "every 1 h", "--json")
    assert json.loads(done.output)["policy"] == {"on_crash": "complete"}
    done = slotqueue("jobs", "put", "app:slots", "mine", "every 1 h")
    assert "Note: the application has a job of this name in its code" in done.stderr
    text = slotqueue("jobs", "list", "app:slots").output
    assert "goes before it" in text
    done = slotqueue("jobs", "put", "app:slots", "digest", "every 1 h", "--enqueuer", "celery")
    assert (done.exit_code, "no enqueuer of the kind 'celery'" in done.stderr) == (2, True)
    done = slotqueue("jobs", "remove", "app:slots", "mine")
    assert done.exit_code == 0
    done = slotqueue("jobs", "remove", "app:slots", "mine")
    assert "it is a job in code, and none of its name is stored" in done.stderr


def test_check_tells_which_stored_jobs_will_not_run(
    slotqueue: Slotqueue, write_app: Callable[..., None], stage: Stage, redis_url: str
) -> None:
    write_app('slots.add("mine", Every(hours=1))\n', redis_url)
    for name, kind in (("mine", "fake"), ("celerys", "celery"), ("mail", "fake")):
        said = ("--enqueuer", kind, "--on-crash", "skip", "--redis", redis_url)
        assert slotqueue("jobs", "put", name, "every 1 h", *said).exit_code == 0
    stage.redis.hset("ran:stored", "newer", '5 5 v1 {"format": 9}')
    stage.run(stage.verbs.enlist(Process("w1", tasks=("fake:mine",))))
    checked = json.loads(slotqueue("check", "app:slots", "--json").output)
    found = {each["about"]: each["text"] for each in checked["findings"]}
    assert "which goes before it" in found["stored job 'mine'"]
    assert "no enqueuer of the kind 'celery'" in found["stored job 'celerys'"]
    assert "newer slotqueue" in found["stored job 'newer'"]
    assert "stored job 'mail'" not in found
    assert "no guarded fake worker has the task 'mail'" in found["job 'mail'"]
    without = slotqueue("check", "--redis", redis_url).output
    assert "newer slotqueue" in without
    assert "celerys" not in without


def test_what_cannot_be_read_is_listed_all_the_same(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    stage.redis.hset("ran:stored", "newer", '5 5 v1 {"format": 9}')
    text = slotqueue("jobs", "list", "--redis", redis_url).output
    assert "newer  ?" in text
    assert "stored by a newer slotqueue" in text


@pytest.mark.parametrize("enqueuer", ["fake", None])
def test_an_operator_may_trigger_and_backfill_a_stored_job_without_its_code(
    enqueuer: str | None, slotqueue: Slotqueue, write_app: Callable[..., None], redis_url: str
) -> None:
    where = ("--redis", redis_url)
    said = () if enqueuer is None else ("--enqueuer", enqueuer)
    assert slotqueue("jobs", "put", "digest", "every 1 h", "--on-crash", "complete", *said, *where).exit_code == 0
    span = ("--from", "2026-01-01T00:00Z", "--to", "2026-01-01T03:00Z")
    write_app("", redis_url)
    assert slotqueue("tick", "app:slots").exit_code == 0, "a replica has made it known"
    assert slotqueue("trigger", "digest", *where).exit_code == 0
    assert slotqueue("backfill", "digest", *span, "--dry-run", *where).exit_code == 0
    assert slotqueue("trigger", "app:slots", "digest").exit_code == 0, "the code knows which worker system it is"
    sent = slotqueue("sweep", "app:slots").stdout
    assert sent.count("ran:digest:") == 2


@pytest.mark.parametrize(
    "words,problem",
    [
        (["put", "a"], "1 words; say [MODULE:ATTRIBUTE] JOB SCHEDULE"),
        (["put", "a", "every", "5", "min"], "4 words; say"),
        (["put", "a", "5 min"], "'5 min' is no schedule; right is a text like"),
        (["put", "a", "every 0 s"], "out of range"),
        (["put", "", "every 5 s"], "a job's name is a text of 1 to 200 characters"),
        (["put", "a", "every 5 s", "--args", "{}"], "right is JSON such as"),
        (["put", "a", "every 5 s", "--kwargs", "kind=short"], "right is JSON such as"),
        (["put", "a", "every 5 s", "--set", "lookback"], "is no FIELD=VALUE; a policy has on_crash"),
        (["put", "a", "every 5 s", "--set", "mood=good"], "job 'a', mood: there is no such argument"),
        (["put", "a", "every 5 s", "--set", "lease=long"], "job 'a', lease: 'long' is neither a timedelta nor seconds"),
        (["put", "a", "every 5 s", "--on-crash", "retry"], "Invalid value for '--on-crash'"),
        (["put", "a", "every 5 s", "--version", "-1"], "Invalid value for '--version'"),
        (["put", "a", "every 5 s"], "(--on-crash on the command line)"),
        (["remove", "a"], "job 'a': no such job is stored in the namespace 'ran'; no job is stored there"),
        (["remove", "a\n"], "cannot be printed"),
        (["remove"], "Missing argument"),
        (["list", "a"], "does not name an application"),
        (["steal", "a"], "No such command 'steal'"),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(
    words: list[str], problem: str, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    before = stage.snapshot()
    said = [] if "--on-crash" in words or words[-1] == "every 5 s" or words[0] != "put" else ["--on-crash", "skip"]
    done = slotqueue("jobs", *words, *said, "--redis", redis_url)
    assert done.exit_code == 2
    assert problem in " ".join(done.stderr.split())
    assert "Traceback" not in done.output
    assert stage.snapshot() == before


def test_a_name_that_comes_close_is_offered(slotqueue: Slotqueue, redis_url: str) -> None:
    assert slotqueue("jobs", "put", "digest", "@daily", "--on-crash", "skip", "--redis", redis_url).exit_code == 0
    done = slotqueue("jobs", "remove", "digets", "--redis", redis_url)
    assert "did you mean 'digest'?" in done.stderr


@pytest.mark.parametrize("words", [["put", "a", "@daily", "--on-crash", "skip"], ["list"], ["remove", "a"]])
def test_without_redis_each_verb_says_so(words: list[str], slotqueue: Slotqueue) -> None:
    done = slotqueue("jobs", *words, "--redis", "redis://:secret@127.0.0.1:1/0")
    assert done.exit_code == 3
    assert done.stderr.startswith("Error: Redis at redis://:***@127.0.0.1:1/0")


def test_a_removed_job_owes_nothing_from_then_and_can_be_forgotten_at_once(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    where = ("--redis", redis_url)
    slotqueue("jobs", "put", "rollup", "every 1 h", "--on-crash", "skip", *where)
    version, _, rest = str(stage.redis.hget("ran:stored", "rollup")).split(" ", 2)
    since = stage.now() - 5 * HOUR
    stage.redis.hset("ran:stored", "rollup", f"{version} {since} {rest}")
    register(stage, hourly_job(), since=since)
    done = slotqueue("jobs", "put", "rollup", "every 1 h", "--on-crash", "complete", *where)
    assert (done.stdout.endswith("; replicas work by it within 2 s\n"), done.stderr) == (True, "")
    assert "undecided since" in slotqueue("status", *where).stdout
    done = slotqueue("jobs", "remove", "rollup", *where)
    assert done.stdout == "removed 'rollup'; none of its slots begins any more\n"
    assert "undecided" not in slotqueue("status", *where).stdout
    (row,) = json.loads(slotqueue("status", "--job", "rollup", "--json", *where).stdout)["jobs"]
    assert (row["is_in_force"], row["undecided_since"]) == (False, None)
    assert slotqueue("audit", "--since", "3h", *where).stdout.startswith("3 slots due"), "those of before stay"
    past, now = str(stage.redis.hget("ran:past", "rollup")).split(":"), stage.now()
    assert (int(past[1]), now - 60_000 < int(past[2]) <= now) == (since, True)
    assert slotqueue("forget", "rollup", *where).exit_code == 0


def test_a_job_in_code_stays_in_force_where_a_stored_one_of_its_name_is_removed(
    slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    where = ("--redis", redis_url)
    register(stage, hourly_job(), since=stage.now() - HOUR)
    done = slotqueue("jobs", "put", "rollup", "every 1 h", "--on-crash", "skip", *where)
    assert ("within 2 s" in done.stdout, "in their code, which goes before it" in done.stderr) == (False, True)
    version, since, rest = str(stage.redis.hget("ran:stored", "rollup")).split(" ", 2)
    stage.redis.hset("ran:stored", "rollup", f"{int(version) - 60_000} {since} {rest}")  # put a minute ago
    done = slotqueue("jobs", "remove", "rollup", *where)
    assert done.stdout == "removed 'rollup'; the job of this name in code goes on\n"
    (row,) = json.loads(slotqueue("status", "--job", "rollup", "--json", *where).stdout)["jobs"]
    assert row["is_in_force"]
