"""Text that nobody meant to be read: every parser answers with its own error or a sound value, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotqueue import ConfigurationError, Cron, Every, Policy, SlotQueue
from slotqueue.answers import StoredEntry
from slotqueue.cli.instants import Ago, Ahead, Instant
from slotqueue.errors import InvalidSchedule, InvalidSlotKey
from slotqueue.job_builder import build_job
from slotqueue.messages import Slip
from slotqueue.ops.site import canonical
from slotqueue.policy import Terms
from slotqueue.schedule_text import parse_schedule
from slotqueue.slots import key_at, parse_key
from slotqueue.store.connections import place_of, safe_url
from slotqueue.store.readings import gap_of, process_of, record_of, versions_of
from slotqueue.stored_job import StoredJob

AT = datetime(2026, 10, 2, 3, tzinfo=UTC)

# What looks nearly right breaks more than noise does.
_WORDS = ": ~ T 2026-10-02T03:00 ran * / - , @daily cron every offset 60 ٣ 🕒 [ ] { } null 1e999 -1 c a 0 Europe/Berlin"
_PIECES = st.sampled_from([*_WORDS.split(), " ", '"', "\x00", "\n", "\ud800", "0 3 * * *", "5 min"])
texts = st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=12).map("".join))


@pytest.mark.parametrize(
    "parse, error",
    [
        (parse_key, InvalidSlotKey),
        (parse_schedule, InvalidSchedule),
        (Cron, InvalidSchedule),
        (lambda text: Cron("0 3 * * *", tz=text), InvalidSchedule),
        (Terms.parse, ValueError),
        (Slip.from_json, ValueError),
        (lambda text: place_of(text, "ran"), ConfigurationError),
        (lambda text: place_of(f"redis://{text}", "ran"), ConfigurationError),
        (lambda text: build_job(text, Every(60), Policy(on_crash="skip"), enqueuer="arq"), ConfigurationError),
        (canonical, ()),
        (safe_url, ()),
        (versions_of, ()),
        (gap_of, ()),
        (lambda text: process_of("web-1", text), ()),
        (lambda text: StoredEntry.parse("mail", text), ()),
        (lambda text: StoredJob.from_json("mail", text), ConfigurationError),
        (lambda text: Instant().convert(text, None, None), click.BadParameter),
        (lambda text: Ago().convert(text, None, None), click.BadParameter),
        (lambda text: Ahead().convert(text, None, None), click.BadParameter),
    ],
)
@given(text=texts)
def test_a_parser_refuses_by_its_own_error(parse: Callable[[str], Any], error: Any, text: str) -> None:
    try:
        parse(text)
    except error:
        return


@given(text=texts)
def test_what_is_read_as_a_key_is_written_the_same(text: str) -> None:
    try:
        parts = parse_key(text)
    except InvalidSlotKey:
        return
    assert text.startswith(key_at(parts.namespace, parts.job, parts.fire_time))


@given(text=texts)
def test_what_is_read_as_a_schedule_is_written_and_read_the_same(text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except InvalidSchedule:
        return
    assert parse_schedule(str(schedule)) == schedule
    following = schedule.next_after(AT)
    assert following is None or following > AT


@given(st.dictionaries(st.sampled_from(["state", "n", "fence", "fire", "terms", "claimed", "events", "past.1"]), texts))
def test_a_record_of_any_content_is_sound_or_said_to_be_damaged(raw: dict[str, str]) -> None:
    record, damage = record_of(raw)
    assert record is not None or damage or not raw


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | texts, lambda some: st.lists(some, max_size=4), max_leaves=9)
)
def test_json_that_is_no_slip_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own, or ours
        Slip.from_json(json.dumps(value))


values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.timedeltas(), st.lists(st.none()))
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | texts,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=3),
    max_leaves=6,
)
_OF_A_JOB = ("format", "schedule", "task", "args", "kwargs", "queue", "enqueuer", "options", "policy", "colour")
_OF_A_POLICY = tuple(each.name for each in fields(Policy))


@given(said=st.dictionaries(st.sampled_from(_OF_A_JOB), json_values, max_size=2))
def test_a_stored_job_of_any_content_is_a_job_or_refused(said: dict[str, Any]) -> None:
    try:
        StoredJob.from_json("mail", json.dumps({"format": 1, "schedule": "every 5 min", **said}))
    except ConfigurationError:
        return


@given(said=st.dictionaries(st.sampled_from(_OF_A_POLICY), values))
def test_a_policy_of_any_values_is_one_or_refused(said: dict[str, Any]) -> None:
    terms, refused = None, ""
    try:
        terms = build_job("mail", Every(60), Policy(**{"on_crash": "skip", **said}), enqueuer="arq").terms
    except ConfigurationError as error:
        refused = error.argument or ""
    assert refused in said if terms is None else Terms.parse(terms.text) == terms


_SETTINGS = ("namespace", "sweep_every", "claim_spread", "replicas_to_ack", "concurrency", "app", "dead_letter")


@given(name=st.sampled_from(_SETTINGS), value=values)
def test_a_setting_of_any_value_is_taken_or_refused_by_name(name: str, value: Any) -> None:
    said: dict[str, Any] = {name: value}
    refused = ""
    try:
        SlotQueue("redis://127.0.0.1:1/0", **said)
    except ConfigurationError as error:
        refused = f"{error.argument} {error}"
    assert not refused or name in refused


passwords = st.text(min_size=6, max_size=20).filter(lambda text: text.isprintable() and "s3cret" not in text)


@given(password=passwords)
def test_no_password_is_in_what_is_said_of_a_url(password: str) -> None:
    secret = f"s3cret{password}s3cret"
    assert "s3cret" not in safe_url(f"redis://user:{secret}@host:6379/0")


@given(seconds=st.one_of(st.floats(), st.integers()))
def test_a_period_is_refused_or_kept_whole(seconds: float) -> None:
    try:
        schedule = Every(seconds)
    except InvalidSchedule:
        return
    following = schedule.next_after(AT)
    assert following is None or AT < following <= AT + timedelta(seconds=float(seconds))
