"""What `SlotQueue` and `add` refuse, each naming the job, the argument and what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from slotqueue import ConfigurationError, Cron, Every, Policy, SlotQueue
from slotqueue.jobs import Job
from slotqueue.messages import Delivery, Message, Waiting

URL = "redis://someone:secret@127.0.0.1:1/0"


class Queue:
    """An enqueuer that is never asked to enqueue."""

    kind = "queue"

    def check(self, job: Job) -> None:
        pass

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        raise AssertionError(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        raise AssertionError(waiting)

    async def close(self) -> None:
        pass


@pytest.fixture
def slots() -> SlotQueue:
    return SlotQueue(URL, enqueuer=Queue(), defaults=Policy(on_crash="skip"))


def function() -> None:
    pass


@pytest.mark.parametrize(
    "given,argument",
    [
        ({"task": function}, "task"),
        ({"task": ""}, "task"),
        ({"queue": 5}, "queue"),
        ({"args": "abc"}, "args"),
        ({"args": 7}, "args"),
        ({"kwargs": ["kind"]}, "kwargs"),
        ({"kwargs": {1: "kind"}}, "kwargs"),
        ({"options": "priority"}, "options"),
        ({"on_crash": "retry"}, "on_crash"),
        ({"lookbak": 3}, "lookbak"),
    ],
)
def test_a_wrong_argument_is_named(slots: SlotQueue, given: dict[str, Any], argument: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^job 'rollup', {argument}: "):
        slots.add("rollup", Every(hours=1), **given)
    assert not slots.jobs


@pytest.mark.parametrize("schedule", ["0 3 * * *", None, timedelta(hours=1), Cron, Every])
def test_what_is_no_schedule_is_refused(slots: SlotQueue, schedule: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"job 'rollup', schedule: .*use Cron\('0 3 \* \* \*'\)"):
        slots.add("rollup", schedule)


def test_a_function_as_the_name_is_refused(slots: SlotQueue) -> None:
    with pytest.raises(ConfigurationError, match=r"^name: a job's name is a text"):
        slots.add(function, Every(hours=1))  # type: ignore[arg-type]


def test_two_jobs_of_one_name_are_refused(slots: SlotQueue) -> None:
    slots.add("rollup", Every(hours=1))
    with pytest.raises(ConfigurationError, match="there is a job of this name already"):
        slots.add("rollup", Every(hours=2))
    slots.remove("rollup")
    assert slots.add("rollup", Every(hours=2)).task == "rollup"


def test_removing_an_unknown_job_is_refused(slots: SlotQueue) -> None:
    with pytest.raises(ConfigurationError, match="job 'rollup': there is no such job"):
        slots.remove("rollup")


def test_without_an_enqueuer_a_job_cannot_be_added() -> None:
    with pytest.raises(ConfigurationError, match="there is no enqueuer"):
        SlotQueue(URL).add("rollup", Every(hours=1), on_crash="skip")


def test_two_enqueuers_of_one_kind_are_refused(slots: SlotQueue) -> None:
    with pytest.raises(ConfigurationError, match="another enqueuer of the kind 'queue'"):
        slots.add("rollup", Every(hours=1), enqueuer=Queue())


@pytest.mark.parametrize(
    "given,argument",
    [
        ({"namespace": "a:b"}, "namespace"),
        ({"sweep_every": 0}, "sweep_every"),
        ({"sweep_every": True}, "sweep_every"),
        ({"claim_spread": -1}, "claim_spread"),
        ({"redis": "localhost:6379"}, "redis"),
    ],
)
def test_a_wrong_argument_of_the_application_is_named(given: dict[str, Any], argument: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{argument}: "):
        SlotQueue(**{"redis": URL, **given})


def test_the_password_is_in_no_text(slots: SlotQueue) -> None:
    assert "secret" not in repr(slots)
    assert "someone:***@127.0.0.1:1" in repr(slots)


def test_the_period_of_a_job_is_the_same_whenever_its_replica_starts(slots: SlotQueue) -> None:
    assert slots.add("weekdays", Cron("0 9 * * 1-5")).period == timedelta(days=1)
    assert slots.add("monthly", Cron("0 0 1 * *")).period == timedelta(days=31)
    assert slots.add("often", Every(seconds=5)).period == timedelta(seconds=5)
