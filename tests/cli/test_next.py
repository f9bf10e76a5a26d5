"""`slotqueue next`: fire times in UTC and in the job's zone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.conftest import Slotqueue
from tests.store.registering import hourly_job, register
from tests.store.stage import Stage

WriteApp = Callable[..., None]
JOBS = """
slots.add("nightly", Cron("30 2 * * *", tz="Europe/Berlin"))
slots.add("weekly report", Cron("0 9 * * mon"))
slots.add("ping", Every(minutes=5))
"""
KEY_1, KEY_2 = "ran:nightly:2026-10-25T00:30", "ran:nightly:2026-10-26T01:30"
AFTER = ("--after", "2026-10-24T12:00Z")


def test_fire_times_across_a_clock_change_show_both_offsets(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("next", "app:slots", "nightly", "-n", "2", *AFTER)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["job", "UTC", "local", "zone", "in", "slot"],
        [
            "nightly",
            "2026-10-25T00:30:00Z",
            "2026-10-25T02:30:00+02:00",
            "Europe/Berlin",
            "12",
            "h",
            "30",
            "min",
            KEY_1,
        ],
        ["nightly", "2026-10-26T01:30:00Z", "2026-10-26T02:30:00+01:00", "Europe/Berlin", "1", "d", "13", "h", KEY_2],
    ]


def test_as_json_each_fire_time_has_its_slot_key(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("next", "app:slots", "weekly report", "-n", "1", "--json", *AFTER)
    assert json.loads(result.stdout) == [
        {
            "job": "weekly report",
            "fire_time": "2026-10-26T09:00:00Z",
            "local": "2026-10-26T09:00:00+00:00",
            "zone": "UTC",
            "key": "ran:weekly report:2026-10-26T09:00",
        }
    ]


def test_without_a_job_all_of_them_are_shown_five_times_each(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    rows = json.loads(slotqueue("next", "app:slots", "--json").stdout)
    assert [row["job"] for row in rows] == ["nightly"] * 5 + ["weekly report"] * 5 + ["ping"] * 5


def test_with_the_environment_a_single_word_is_a_job(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("next", "ping", "-n", "1", *AFTER, env={"SLOTQUEUE_APP": "app:slots"})
    assert "2026-10-24T12:05:00Z" in result.stdout


@pytest.mark.parametrize(
    "job, hint",
    [
        ("nigthly", "there is no job 'nigthly'; did you mean 'nightly'?"),
        ("zzz", "there is no job 'zzz'; known are 'nightly', 'ping', 'weekly report'"),
    ],
)
def test_an_unknown_job_is_2_with_the_known_names(
    write_app: WriteApp, slotqueue: Slotqueue, job: str, hint: str
) -> None:
    write_app(JOBS)
    result = slotqueue("next", "app:slots", job)
    assert (result.exit_code, result.stdout) == (2, "")
    said, error = result.stderr.splitlines()
    assert error == f"Error: {hint}"
    assert said.startswith("(only jobs in code: Redis at redis://127.0.0.1:1/0: ")
    offline = slotqueue("next", "app:slots", job, "--offline")
    assert offline.stderr == f"Error: {hint}\n"


@pytest.mark.parametrize(
    "args, problem",
    [
        (["app:slots", "weekly", "report"], "a job's name with blanks needs quotes"),
        (["app:slots", "-n", "0"], "0 is not in the range"),
        (["app:slots", "--after", "yesterday"], "'yesterday' is no instant; one looks like 2026-10-25T00:30Z"),
    ],
)
def test_wrong_input_is_2_and_says_what_would_be_right(
    write_app: WriteApp, slotqueue: Slotqueue, args: list[str], problem: str
) -> None:
    write_app(JOBS)
    result = slotqueue("next", *args)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_schedule_that_fails_names_the_job(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app("""
class Moody(Every):
    def next_after(self, t):
        if Moody.is_moody:
            raise RuntimeError("not today")
        return super().next_after(t)

Moody.is_moody = False
slots.add("moody", Moody(minutes=1))
Moody.is_moody = True
""")
    result = slotqueue("next", "app:slots")
    assert result.exit_code == 2
    assert "job 'moody', schedule: the schedule fails: RuntimeError: not today" in result.stderr


def jobs_of(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [f"{row['job']} {row['fire_time']}" for row in json.loads(result.stdout)]


def test_stored_jobs_stand_beside_those_in_code_which_go_before_them(
    write_app: WriteApp, slotqueue: Slotqueue, stage: Stage, redis_url: str
) -> None:
    write_app('slots.add("ping", Every(minutes=5))\n', redis_url)
    where = ("--on-crash", "skip", "--redis", redis_url)
    for name, schedule, *kind in (("ping", "@daily"), ("digest", "every 1 h"), ("mail", "@daily", "--enqueuer", "x")):
        assert slotqueue("jobs", "put", name, schedule, *kind, *where).exit_code == 0
    asked = ("next", "-n", "1", "--json", *AFTER)
    code, own = "ping 2026-10-24T12:05:00Z", "digest 2026-10-24T13:00:00Z"
    assert jobs_of(slotqueue(*asked, "app:slots")) == [code, own], "no enqueuer of the application can send a mail"
    assert jobs_of(slotqueue(*asked, "app:slots", "--offline")) == [code]
    alone = (*asked, "--redis", redis_url)
    assert jobs_of(slotqueue(*alone)) == [own, "mail 2026-10-25T00:00:00Z", "ping 2026-10-25T00:00:00Z"]
    assert slotqueue("tick", "app:slots").exit_code == 0
    version, rest = str(stage.redis.hget("ran:stored", "ping")).split(" ", 1)
    stage.redis.hset("ran:stored", "ping", f"{int(version) - 60_000} {rest}")  # put a minute ago
    assert jobs_of(slotqueue(*alone, "ping")) == [code], "a replica has it in code"
    assert slotqueue("jobs", "put", "digest", "every 2 h", *where).exit_code == 0
    assert jobs_of(slotqueue(*alone, "digest")) == ["digest 2026-10-24T14:00:00Z"], "also before a replica knows it"
    register(stage, hourly_job("moon", schedule="full moons"))
    shown = slotqueue(*alone)
    assert "(only their application can tell when these fire: moon)" in shown.stderr
    wrong = slotqueue(*alone, "moon")
    assert (wrong.exit_code, "name it as MODULE:ATTRIBUTE" in wrong.stderr) == (2, True)
    assert slotqueue("next", "--redis", "redis://127.0.0.1:1/0").exit_code == 3
