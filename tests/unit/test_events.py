"""Events: one table of levels and messages, a hook that cannot do harm."""

from __future__ import annotations

import logging
from dataclasses import MISSING, fields

import pytest

from slotqueue import events
from slotqueue.events import Event, Events, SlotClaimed, SlotDead, SlotEnqueued, SlotTaken, SlotTakenOver, is_heard

ALL = [
    each for each in vars(events).values() if isinstance(each, type) and issubclass(each, Event) and each is not Event
]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_event_has_a_message_that_its_own_fields_fill(
    kind: type[Event], caplog: pytest.LogCaptureFixture
) -> None:
    assert kind.__doc__
    assert all(field.default is MISSING for field in fields(kind))
    facts = {field.name: 1 if "int" in str(field.type) or "float" in str(field.type) else "x" for field in fields(kind)}
    with caplog.at_level(logging.DEBUG, logger="slotqueue"):
        Events()(kind(**facts))
    (record,) = caplog.records
    assert record.levelno == kind.level
    assert "{" not in record.getMessage()
    assert record.__dict__["facts"] == facts


QUIET = {"SlotClaimed", "SlotTaken", "ConfirmStale"}
LOUD = {"SlotDead", "SlotLost", "StoreLost", "DataLost", "JobTroubled", "JobUnusable", "SlotBroken"}
LOUDEST = {"PassFailed", "LoopDied"}


def test_the_ordinary_is_quiet_what_is_mended_warns_and_what_is_lost_is_an_error() -> None:
    levels = {kind.__name__: kind.level for kind in ALL}
    assert {name for name, level in levels.items() if level == logging.DEBUG} == QUIET
    assert {name for name, level in levels.items() if level == logging.ERROR} == LOUD
    assert {name for name, level in levels.items() if level == logging.CRITICAL} == LOUDEST
    assert {"SlotTakenOver", "SlotsMissed", "EnqueueRefused", "StoreBack"} <= {
        name for name, level in levels.items() if level == logging.WARNING
    }


def test_an_ordinary_lost_race_is_quiet_and_a_dead_letter_is_loud() -> None:
    assert SlotTaken.level == SlotClaimed.level == logging.DEBUG
    assert SlotEnqueued.level == logging.INFO
    assert SlotTakenOver.level == logging.WARNING
    assert SlotDead.level == logging.ERROR


def test_people_count_enqueues_from_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="slotqueue"):
        Events()(SlotEnqueued("ran:a:2026-11-30T12:00", "a", n=0, is_guarded=True))
    (record,) = caplog.records
    assert record.getMessage() == "ran:a:2026-11-30T12:00 enqueued, number 1"
    assert record.__dict__["facts"]["n"] == 0


def test_a_hook_that_raises_is_logged_and_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    def hook(event: Event) -> None:
        raise RuntimeError("the pager is down")

    with caplog.at_level(logging.ERROR, logger="slotqueue"):
        Events(hook)(SlotTaken("ran:a:2026-11-30T12:00", "a", "r1"))
    assert "on_event raised for SlotTaken" in caplog.text


def test_an_event_is_heard_by_a_hook_by_whoever_is_no_log_and_by_a_log_of_its_level() -> None:
    heard: list[Event] = []
    for emit in (heard.append, Events(heard.append)):
        assert is_heard(emit, SlotTaken)
    level = events.logger.level
    try:
        events.logger.setLevel(logging.INFO)
        assert is_heard(Events(), SlotEnqueued)
        assert not is_heard(Events(), SlotTaken)
    finally:
        events.logger.setLevel(level)


def test_the_hook_gets_the_event_itself() -> None:
    heard: list[Event] = []
    event = SlotTaken("ran:a:2026-11-30T12:00", "a", "r1")
    Events(heard.append)(event)
    assert heard == [event]
