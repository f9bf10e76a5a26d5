"""A stored job as JSON: it comes back as it was, and what cannot is refused where it is put."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slotqueue import ConfigurationError, Cron, Every, Policy
from slotqueue.answers import StoredEntry
from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Waiting
from slotqueue.stored_job import StoredJob

SKIP = Policy(on_crash="skip")


class Queue:
    """An enqueuer that takes no queue of a certain name."""

    kind = "queue"

    def check(self, job: Job) -> None:
        if job.queue == "unknown":
            raise ConfigurationError("there is no such queue", job=job.name, argument="queue")

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        raise AssertionError(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        raise AssertionError(waiting)

    async def close(self) -> None:
        pass


def said(**more: Any) -> StoredJob:
    return StoredJob(**{"name": "rollup", "schedule": Every(hours=1), "policy": SKIP, **more})


@pytest.mark.parametrize(
    "job",
    [
        said(),
        said(
            schedule=Cron("0 3 * * mon", tz="Europe/Berlin"),
            task="do_rollup",
            args=("a", 1, None, [1.5, {"deep": True}]),
            kwargs={"ä": "ö", "empty": {}},
            queue="slow",
            options={"priority": 5},
            enqueuer="queue",
            by="me@host",
            policy=Policy(on_crash="complete", lookback=0, expires=60.5, requeue_after=None, coalesce=True),
        ),
    ],
)
def test_a_job_comes_back_from_its_text(job: StoredJob) -> None:
    assert StoredJob.from_json("rollup", job.to_json()) == job


def test_durations_are_stored_as_seconds() -> None:
    text = said(policy=Policy(on_crash="skip", lease=timedelta(minutes=5))).to_json()
    assert json.loads(text)["policy"] == {"on_crash": "skip", "lease": 300.0}


def test_a_stored_job_is_the_job_that_code_would_add(queue: Queue) -> None:
    job = said(task="do_rollup", kwargs={"a": 1}).build({"queue": queue}, queue, version=7, since=5)
    assert (job.version, job.stored, job.since, job.enqueuer, job.task) == ("s7", 7, 5, "queue", "do_rollup")
    assert job.schedule_version == said().build({"queue": queue}, queue).schedule_version


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.mark.parametrize(
    "argument,value",
    [
        ("args", [(1, 2)]),
        ("args", [datetime(2026, 1, 1, tzinfo=UTC)]),
        ("args", [float("nan")]),
        ("args", [print]),
        ("kwargs", {"a": {1: 2}}),
        ("kwargs", {"a": {1, 2}}),
        ("options", {"headers": (1,)}),
    ],
)
def test_what_json_would_change_is_refused(argument: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^job 'rollup', {argument}: .* does not come back from JSON"):
        said(**{argument: value}).to_json()


def test_a_job_of_more_than_64_kb_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="65536 at most can be stored"):
        said(args=["x" * 70_000]).to_json()


@pytest.mark.parametrize(
    "more,argument",
    [
        ({"name": "a\nb"}, "name"),
        ({"args": "abc"}, "args"),
        ({"kwargs": ["a"]}, "kwargs"),
        ({"task": 5}, "task"),
        ({"policy": Policy()}, "on_crash"),
        ({"policy": Policy(on_crash="skip", lookback=-1)}, "lookback"),
        ({"queue": "unknown"}, "queue"),
        ({"enqueuer": "celery"}, "enqueuer"),
    ],
)
def test_a_stored_job_is_checked_as_in_code(more: dict[str, Any], argument: str, queue: Queue) -> None:
    with pytest.raises(ConfigurationError) as caught:
        said(**more).build({"queue": queue}, queue)
    assert caught.value.argument == argument


def test_an_application_without_an_enqueuer_of_its_own_runs_only_jobs_that_name_one(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match="this application has no enqueuer of its own"):
        said().build({"queue": queue}, None)
    assert said(enqueuer="queue").build({"queue": queue}, None).enqueuer == "queue"


@pytest.mark.parametrize(
    "text,problem",
    [
        ("", "damaged"),
        ("rubbish", "damaged"),
        ("[]", "damaged"),
        ('{"format": 1, "policy": 5}', "damaged"),
        ('{"format": 1, "schedule": "every 5s", "args": 5}', "damaged"),
        ('{"format": 2, "schedule": "every 5s"}', "stored by a newer slotqueue (format 2)"),
        ('{"format": 1, "schedule": "every 5s", "colour": "red"}', "stored by a newer slotqueue (colour)"),
        ('{"format": 1, "schedule": "every 5s", "policy": {"mood": 1}}', "there is no such argument"),
        ('{"format": 1, "schedule": "on sundays"}', "is no schedule"),
        ('{"format": 1}', "is no schedule"),
    ],
)
def test_what_this_version_cannot_read_is_said(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        StoredJob.from_json("rollup", text)
    assert problem in str(caught.value)


@pytest.mark.parametrize("raw", ["rubbish", "1 2", "x 2 v1 {}", "1 2 v1 "])
def test_a_damaged_entry_has_no_version_and_no_text(raw: str) -> None:
    entry = StoredEntry.parse("rollup", raw)
    assert (entry.version, entry.text, entry.raw) == (0, "", raw)
