"""Policies: every default as the documents say, every wrong value refused by name, the text form whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.policy import Policy, Terms, terms_of
from slotqueue.schedules import Every

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def terms(period: timedelta = HOUR, **given: Any) -> Terms:
    return terms_of("rollup", Policy(**{"on_crash": "complete", **given}), period)


def job(**given: Any) -> Job:
    facts = {"name": "rollup", "schedule": Every(hours=1), "task": "t", "enqueuer": "arq", "period": HOUR}
    return Job(**{**facts, "policy": Policy(on_crash="skip"), **given})


def test_on_crash_must_be_said_and_the_error_explains_the_choice() -> None:
    with pytest.raises(ConfigurationError, match=r"job 'rollup', on_crash: say whether a repeat or a skip is worse"):
        terms_of("rollup", Policy(), HOUR)


def test_defaults_under_complete() -> None:
    assert terms()._asdict() == {
        "on_crash": "c", "on_failure": "d", "overlap": "a", "lease": 60_000, "requeue": 300_000, "max_attempts": 5,
        "retention": DAY_MS, "history": 200 * HOUR_MS, "expires": 0, "done_within": HOUR_MS, "longest_wait": HOUR_MS,
    }  # fmt: skip


def test_under_skip_a_queued_slot_is_never_enqueued_again() -> None:
    assert terms(on_crash="skip").requeue == 0
    assert terms(on_crash="skip", requeue_after=60).requeue == 60_000
    assert terms(requeue_after=None).requeue == 0


@pytest.mark.parametrize(
    "period,retention,history,done_within",
    [
        (timedelta(minutes=1), DAY, DAY, timedelta(minutes=1)),
        (DAY, 10 * DAY, 90 * DAY, HOUR),
        (timedelta(days=30), timedelta(days=300), timedelta(days=300), HOUR),
    ],
)
def test_lives_follow_the_period(
    period: timedelta, retention: timedelta, history: timedelta, done_within: timedelta
) -> None:
    found = terms(period)
    lives = (found.retention, found.history, found.done_within)
    assert lives == tuple(each / timedelta(milliseconds=1) for each in (retention, history, done_within))


def test_the_text_form_reads_back() -> None:
    found = terms(expires=timedelta(minutes=5), lease=2.5, max_attempts=7)
    assert Terms.parse(found.text) == found
    assert len(found.text) <= 64, "a longer value would cost each record its compact encoding in Redis"


@pytest.mark.parametrize("text", ["", "c d a", "c d a x 0 5 1 1 0 1 1"])
def test_a_damaged_text_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"lacks|invalid literal"):
        Terms.parse(text)


@pytest.mark.parametrize(
    "given,argument",
    [
        ({"on_crash": "retry"}, "on_crash"),
        ({"on_failure": "retry"}, "on_failure"),
        ({"overlap": "queue"}, "overlap"),
        ({"overlap": "hold", "max_held": 0}, "max_held"),
        ({"max_held": 1001}, "max_held"),
        ({"max_held": True}, "max_held"),
        ({"lookback": -1}, "lookback"),
        ({"lookback": True}, "lookback"),
        ({"lookback": 2.5}, "lookback"),
        ({"lookback": 10_001, "retention": timedelta(days=420), "history": timedelta(days=500)}, "lookback"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"coalesce": 1}, "coalesce"),
        ({"lease": 0.5}, "lease"),
        ({"lease": timedelta(days=2)}, "lease"),
        ({"lease": float("nan")}, "lease"),
        ({"lease": "60"}, "lease"),
        ({"jitter": -1}, "jitter"),
        ({"expires": 0}, "expires"),
        ({"requeue_after": 0}, "requeue_after"),
        ({"retention": timedelta(hours=2)}, "retention"),
        ({"history": timedelta(hours=2)}, "history"),
        ({"done_within": 1e13}, "done_within"),
    ],
)
def test_a_wrong_value_names_job_and_argument(given: dict[str, Any], argument: str) -> None:
    with pytest.raises(ConfigurationError, match=f"job 'rollup', {argument}: "):
        terms(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"lookback": 10_000, "retention": timedelta(days=417)},
        {"lookback": 0},
        {"max_attempts": 1},
        {"lease": 1},
        {"lease": timedelta(days=1), "retention": timedelta(days=2)},
        {"done_within": timedelta(days=3660)},
    ],
)
def test_the_ends_of_a_domain_belong_to_it(given: dict[str, Any]) -> None:
    assert terms(**{"history": timedelta(days=500), **given})


def test_a_claim_that_would_die_before_the_last_replica_asks_is_refused() -> None:
    assert terms(timedelta(minutes=1), lookback=3, retention=timedelta(minutes=6)).retention == 360_000
    with pytest.raises(ConfigurationError, match=r"a claim that lives .* need 0:06:00 or more"):
        terms(timedelta(minutes=1), lookback=3, retention=timedelta(minutes=6) - timedelta(milliseconds=1))


def test_a_misspelt_argument_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"on_crsh: there is no such argument; did you mean 'on_crash'"):
        Policy().with_fields("rollup", {"on_crsh": "skip"})


def test_fields_replace_those_of_a_policy_and_leave_the_others() -> None:
    both = Policy(on_crash="skip", lookback=7).with_fields("rollup", {"on_crash": "complete"})
    assert both == Policy(on_crash="complete", lookback=7)


def test_the_versions_change_with_what_they_name() -> None:
    one = job(kwargs={"a": 1, "b": 2})
    assert job(kwargs={"b": 2, "a": 1}).version == one.version, "the order of arguments says nothing"
    assert job(kwargs={"a": 1, "b": 3}).version != one.version
    assert job(kwargs={"a": 1, "b": 3}).schedule_version == one.schedule_version
    assert job(schedule=Every(hours=2)).schedule_version != one.schedule_version


def test_jitter_is_a_function_of_job_and_fire_time() -> None:
    one = job(policy=Policy(on_crash="skip", jitter=10))
    delays = [one.delay_of(fire) for fire in range(0, 100 * HOUR_MS, HOUR_MS)]
    assert delays == [replace(one).delay_of(fire) for fire in range(0, 100 * HOUR_MS, HOUR_MS)]
    assert all(0 <= delay < 10_000 for delay in delays)
    assert len(set(delays)) > 90
    assert job().delay_of(HOUR_MS) == 0
