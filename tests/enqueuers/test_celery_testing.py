"""`slotqueue.testing.run` for Celery: the task runs eagerly in this process, its slot is real."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery

from slotqueue import Every, Policy, SlotQueue, current_slot
from slotqueue.enqueuers.celery import CeleryEnqueuer
from slotqueue.errors import ConfigurationError
from slotqueue.slots import SlotState
from slotqueue.testing import run

AT = datetime(2026, 3, 29, 1, tzinfo=UTC)


class App:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []
        celery = Celery("test", broker="redis://nowhere.invalid:1/0", set_as_current=False)
        self.slots = SlotQueue(
            "redis://nowhere.invalid:1/0", enqueuer=CeleryEnqueuer(celery), defaults=Policy(on_crash="complete")
        )

        def report(task: Any, kind: str) -> None:
            self.seen.append((task.request.id, kind))
            assert current_slot().key == task.request.id
            if kind == "broken":
                raise ValueError("no data")

        celery.task(name="report", bind=True, shared=False)(report)


@pytest.fixture
def app() -> App:
    return App()


async def test_a_task_runs_for_its_slot_under_the_slots_id(app: App) -> None:
    app.slots.add("hourly", Every(hours=1), task="report", kwargs={"kind": "short"})
    found = await run(app.slots, "hourly", at=AT)
    assert found.state is SlotState.DONE, found.says
    assert app.seen == [("ran:hourly:2026-03-29T01:00", "short")]


async def test_an_error_of_a_task_is_in_the_record(app: App) -> None:
    app.slots.add("hourly", Every(hours=1), task="report", args=("broken",))
    found = await run(app.slots, "hourly", at=AT)
    assert found.state is SlotState.DEAD
    assert found.error == "ValueError: no data"


async def test_a_task_that_is_not_here_is_named(app: App) -> None:
    app.slots.add("hourly", Every(hours=1), task="reprot")
    with pytest.raises(ConfigurationError, match="the Celery application has no task 'reprot' here"):
        await run(app.slots, "hourly", at=AT)
