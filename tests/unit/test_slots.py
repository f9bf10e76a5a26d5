"""Slot keys: the same from every replica, readable from the right, never two slots under one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotqueue.errors import ConfigurationError, InvalidSlotKey
from slotqueue.slots import (
    KeyParts,
    Slot,
    SlotState,
    check_namespace,
    from_ms,
    is_slot_key,
    key_at,
    parse_key,
    slot_key,
    to_ms,
)

HOUR = timedelta(hours=1)
names = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=60).filter(str.isprintable)
instants = st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC))


def test_the_key_of_the_guide() -> None:
    late = datetime(2026, 10, 2, 3, 0, 2, tzinfo=UTC)
    assert slot_key("rollup", late, HOUR) == "ran:rollup:2026-10-02T03:00"


@given(st.floats(-1799, 1799), st.sampled_from([-11, -3.5, 0, 5.75, 14]))
def test_skewed_replicas_in_any_zone_compute_the_same_key(skew: float, zone: float) -> None:
    scheduled = datetime(2026, 10, 2, 3, 30, tzinfo=UTC) + timedelta(seconds=skew)
    there = scheduled.astimezone(timezone(timedelta(hours=zone)))
    assert slot_key("rollup", there, HOUR) == "ran:rollup:2026-10-02T03:00"


def test_seconds_are_told_only_where_they_are_not_zero() -> None:
    at = datetime(2026, 10, 2, 3, 0, 31, tzinfo=UTC)
    assert slot_key("a", at, timedelta(seconds=30)) == "ran:a:2026-10-02T03:00:30"
    assert slot_key("a", at, timedelta(minutes=1)) == "ran:a:2026-10-02T03:00"


def test_the_two_passes_of_an_autumn_hour_are_two_slots() -> None:
    first, second = datetime(2026, 11, 1, 5, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)
    assert slot_key("h", first, HOUR) != slot_key("h", second, HOUR)


@given(names, instants)
def test_a_key_parses_back_whatever_the_job_is_called(job: str, at: datetime) -> None:
    at = at.replace(microsecond=0)
    assert parse_key(key_at("ran", job, at)) == KeyParts("ran", job, at, "")


@given(names, instants, names, instants)
def test_two_slots_never_share_a_key(job: str, at: datetime, other: str, then: datetime) -> None:
    at, then = at.replace(microsecond=0), then.replace(microsecond=0)
    assert (key_at("ran", job, at) == key_at("ran", other, then)) == ((job, at) == (other, then))


def test_the_mark_of_an_operators_slot_is_read() -> None:
    assert parse_key("ran:a:b:2026-10-02T03:00~t17").mark == "~t17"


@pytest.mark.parametrize(
    "text",
    ["", "rollup", "ran:rollup", "ran:rollup:2026-02-31T03:00", "ran:rollup:2026-10-02T03", "ran::2026-10-02T03:00",
     "ran:a:2026-10-02T03:00:done", "ran:a:٢٠٢٦-10-02T03:00", "ran:a:2026-10-02T25:00"],
)  # fmt: skip
def test_what_is_no_key_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidSlotKey, match="one looks like 'ran:rollup:2026-10-02T03:00'"):
        parse_key(text)
    assert not is_slot_key(text)


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidSlotKey, match="no time zone"):
        slot_key("a", datetime(2026, 10, 2, 3), HOUR)


@pytest.mark.parametrize("job", ["", "x" * 201, "a\nb", "a\x00b", "tab\there"])
def test_a_name_that_cannot_stand_in_a_key_is_refused(job: str) -> None:
    with pytest.raises(InvalidSlotKey):
        slot_key(job, datetime(2026, 10, 2, tzinfo=UTC), HOUR)


def test_a_period_that_is_not_positive_is_refused() -> None:
    with pytest.raises(InvalidSlotKey, match="positive"):
        slot_key("a", datetime(2026, 10, 2, tzinfo=UTC), timedelta(0))


@pytest.mark.parametrize("namespace", ["", "a:b", "x" * 101, "a\nb"])
def test_a_namespace_that_would_make_keys_ambiguous_is_refused(namespace: str) -> None:
    with pytest.raises(ConfigurationError, match="namespace"):
        check_namespace(namespace)


@given(instants)
def test_milliseconds_go_there_and_back(at: datetime) -> None:
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert from_ms(to_ms(at)) == at


def test_the_interval_runs_from_the_previous_fire_time_to_its_own() -> None:
    end = datetime(2026, 10, 2, 3, tzinfo=UTC)
    assert Slot("k", "a", end, end - HOUR).interval == (end - HOUR, end)


def test_six_states_are_open() -> None:
    assert {state.value for state in SlotState if state.is_open} == {
        "claimed", "held", "queued", "running", "postponed", "failed",
    }  # fmt: skip
