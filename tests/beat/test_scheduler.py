"""The scheduler object: what it reads, what ends it before it starts, and what it follows."""

from __future__ import annotations

from typing import Any

import celery
import pytest

from slotqueue import ConfigurationError
from slotqueue.beat import SlotScheduler
from slotqueue.beat.application import read_queue
from tests.beat.process import eventually


def app_with(url: str = "redis://127.0.0.1:1/0", **entries: Any) -> celery.Celery:
    app = celery.Celery(set_as_current=False, broker=url, backend="redis://127.0.0.1:1/0")
    app.conf.beat_schedule = entries
    return app


def test_a_beat_scheduler_reads_the_schedule_and_says_where_its_slots_are() -> None:
    scheduler = SlotScheduler(app_with(tidy={"task": "work", "schedule": 5}), lazy=False)
    assert set(scheduler.schedule) == {"tidy"}
    assert scheduler.info == "    . slots -> redis://127.0.0.1:1/0, namespace ran"
    assert not scheduler.should_sync()
    scheduler.close()
    scheduler.close()


def test_celerys_own_clean_up_of_results_is_scheduled_where_a_backend_needs_it() -> None:
    app = app_with(tidy={"task": "work", "schedule": 5})
    assert set(read_queue(app).jobs) == {"tidy"}
    app.backend.supports_autoexpire = False
    assert set(read_queue(app).jobs) == {"tidy", "celery.backend_cleanup"}


def test_a_wrong_entry_ends_beat_before_it_starts() -> None:
    with pytest.raises(ConfigurationError, match=r"job 'tidy', schedule: an interval of 0.1 s is below"):
        SlotScheduler(app_with(tidy={"task": "work", "schedule": 0.1}))
    with pytest.raises(ConfigurationError, match=r"job 'tidy', args\[0\]"):
        SlotScheduler(app_with(tidy={"task": "work", "schedule": 5, "args": (object(),)}))


def test_a_wrong_setting_ends_beat_before_it_starts() -> None:
    with pytest.raises(
        ConfigurationError, match="slotqueue_url: the broker amqp://rabbit// is no plain Redis; set slot"
    ):
        SlotScheduler(app_with("amqp://rabbit//"), lazy=True)


def test_a_new_entry_is_followed_and_a_removed_one_is_left(redis_url: str) -> None:
    scheduler = SlotScheduler(app_with(redis_url, tidy={"task": "work", "schedule": 5}))
    try:
        scheduler.tick()
        ticker = scheduler._ticker
        assert ticker is not None
        scheduler.add(name="other", task="work", schedule=7)
        scheduler.tick()
        eventually(lambda: set(ticker.slots.jobs) == {"tidy", "other"}, what="the new entry")
        del scheduler.schedule["tidy"]
        scheduler.tick()
        eventually(lambda: set(ticker.slots.jobs) == {"other"}, what="its removal")
        scheduler.add(name="broken", task="work", schedule=0.1)
        assert scheduler.tick() > 0
    finally:
        scheduler.close()
