"""What an entry of the beat schedule becomes as a job."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import celery
import pytest
from celery.beat import BeatLazyFunc, ScheduleEntry
from celery.schedules import crontab

from slotqueue import ConfigurationError, Cron, Every, Policy
from slotqueue.beat.entries import Entry, entry_of, job_name


def app_in(zone: str = "UTC") -> celery.Celery:
    app = celery.Celery(set_as_current=False, broker="redis://localhost")
    app.conf.timezone = zone
    return app


def read(name: str = "tidy", app: celery.Celery | None = None, **said: Any) -> Entry:
    app = app or app_in()
    entry = ScheduleEntry(**{"name": name, "task": "proj.tidy", "schedule": 30, "app": app, **said})
    return entry_of(entry, app, Policy(on_crash="skip"))


def test_an_entry_is_read_as_it_is() -> None:
    options = {"queue": "slow", "expires": 20, "headers": {"tenant": "a"}}
    entry = read(args=(1, "two"), kwargs={"three": 3}, options=copy.deepcopy(options))
    assert entry == Entry(
        "tidy",
        Every(seconds=30),
        "proj.tidy",
        (1, "two"),
        {"three": 3},
        {"queue": "slow", "expires": 20, "headers": {"tenant": "a", "celery_beat_task": True}},
        Policy(on_crash="skip"),
    )


def test_reading_an_entry_does_not_change_it() -> None:
    options = {"headers": {"tenant": "a"}, "slotqueue": {"lookback": 0}}
    before = copy.deepcopy(options)
    read(options=options)
    assert options == before


@pytest.mark.parametrize(
    "schedule, expected",
    [
        (60, Every(minutes=1)),
        (60.0, Every(minutes=1)),
        (timedelta(hours=1), Every(hours=1)),
        (crontab(minute=0, hour=3), Cron("0 3 * * *", "Europe/Berlin", both_days=True)),
    ],
)
def test_numbers_timedeltas_and_crontabs_are_schedules(schedule: Any, expected: Any) -> None:
    assert read(app=app_in("Europe/Berlin"), schedule=schedule).schedule == expected


def test_relative_is_heard() -> None:
    assert str(read(schedule=timedelta(days=1), relative=True).schedule) == "midnight every 1 days UTC"


def test_an_entry_says_its_policy_among_its_options() -> None:
    entry = read(options={"slotqueue": {"on_crash": "complete", "lease": 5}})
    assert entry.policy == Policy(on_crash="complete", lease=5)
    assert "slotqueue" not in entry.options


@pytest.mark.parametrize(
    "said, message",
    [
        ("complete", "job 'tidy', options['slotqueue']: 'complete' is no dictionary of policy fields such as"),
        (
            {"on_crush": 1},
            "job 'tidy', options['slotqueue']['on_crush']: there is no such argument; did you mean 'on_crash'",
        ),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused_with_the_entrys_name(said: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(options={"slotqueue": said})
    assert str(caught.value).startswith(message)


def test_a_schedule_that_cannot_be_read_is_refused_with_the_entrys_name() -> None:
    with pytest.raises(ConfigurationError, match=r"job 'tidy', schedule: an interval of 0.5 s is below a second"):
        read(schedule=0.5)


def test_what_the_task_says_of_its_messages_counts_as_in_apply_async() -> None:
    app = app_in()

    @app.task(name="proj.tidy", serializer="yaml", time_limit=9, shared=False)  # type: ignore[untyped-decorator]
    def tidy() -> None: ...

    app.finalize()
    assert read(app=app).options["serializer"] == "yaml"
    entry = read(app=app, options={"serializer": "json"})
    assert (entry.options["serializer"], entry.options["time_limit"]) == ("json", 9)


def test_the_id_of_a_message_is_its_slot_key() -> None:
    assert "task_id" not in read(options={"task_id": "mine"}).options


def test_lazy_arguments_are_not_evaluated_while_an_entry_is_read() -> None:
    calls: list[int] = []
    entry = read(args=(BeatLazyFunc(calls.append, 1),), kwargs={"x": BeatLazyFunc(calls.append, 2)})
    assert isinstance(entry.args[0], BeatLazyFunc)
    assert not calls


def test_add_periodic_task_is_in_the_schedule() -> None:
    app = app_in()

    @app.on_after_configure.connect  # type: ignore[untyped-decorator]
    def set_up(sender: celery.Celery, **_: Any) -> None:
        sender.add_periodic_task(10.0, sender.signature("proj.tidy", args=(1,)), name="each ten")
        sender.add_periodic_task(crontab(minute=0), sender.signature("proj.tidy", args=(2,)), expires=5)

    assert app.conf.beat_schedule
    entries = {
        name: entry_of(ScheduleEntry(**dict(said, name=name, app=app)), app, Policy(on_crash="skip"))
        for name, said in app.conf.beat_schedule.items()
    }
    assert set(entries) == {"each ten", "proj.tidy(2)"}
    assert entries["each ten"].schedule == Every(seconds=10)
    assert entries["proj.tidy(2)"].options["expires"] == 5


def test_a_name_that_cannot_begin_a_key_gets_one_that_stands_for_it() -> None:
    assert job_name("add every 10 s: ä") == "add every 10 s: ä"
    long, longer = job_name("x" * 300), job_name("x" * 301)
    assert len(long) <= 200
    assert long != longer
    assert job_name("a\nb").startswith("a\\nb~")
    assert job_name("") == job_name("")
    assert job_name("")


def test_a_name_with_an_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="each beat would have a job of its own; give it one: add_periodic"):
        read(name=f"proj.tidy({object()!r})")
