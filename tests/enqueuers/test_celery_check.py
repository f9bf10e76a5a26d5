"""What `check` says of Celery's workers: where they listen, and which tasks go past the guard."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import celery
import pytest

from slotqueue import Every, Policy, SlotQueue
from slotqueue.enqueuers.celery import CeleryEnqueuer
from slotqueue.enqueuers.celery.places import place_of, queues_listened_to
from slotqueue.ops.checking import check
from slotqueue.ops.site import Site
from tests.enqueuers.bench import Bench
from tests.enqueuers.celery_system import CelerySystem
from tests.waiting import eventually

pytestmark = pytest.mark.processes


def app_for(url: str, **conf: Any) -> celery.Celery:
    app = celery.Celery("tests", broker=url, set_as_current=False)
    app.conf.update(conf)
    return app


async def found_in(store_url: str, app: celery.Celery, *tasks: str, **about: Any) -> list[tuple[str, str]]:
    """What `check` finds about jobs with these tasks: severity and text."""
    slots = SlotQueue(store_url, enqueuer=CeleryEnqueuer(app), defaults=Policy(on_crash="skip"))
    for task in tasks:
        slots.add(task, Every(hours=1), **about)
    site = Site.of(slots)
    try:
        checked = await check(site)
    finally:
        await site.close()
    return [(each.severity.value, each.text) for each in checked.findings if each.about.startswith("job")]


async def test_tasks_that_go_past_the_guard_are_named_at_the_start_and_by_check_and_count_as_unguarded(
    celery_redis: CelerySystem, celery_redis_bench: Bench
) -> None:
    worker = await celery_redis.start(environment={"stubborn": True})
    assert "the task stubborn is not guarded: Stubborn cannot be wrapped" in worker.text()
    assert "the task batched is not guarded: Batched cannot be wrapped: its Strategy runs messages" in worker.text()
    tasks = await celery_redis_bench.redis.zrange("ran:tasks", 0, -1)
    assert "celery:quick" in tasks
    assert not {"celery:stubborn", "celery:batched"} & set(tasks)
    key = await celery_redis_bench.fire("stubborn", becomes="sent")
    await celery_redis_bench.wait_for_effect(key, "ran")

    stubborn, batched = await found_in(celery_redis.store_url, celery_redis.app, "quick", "stubborn", "batched")
    assert stubborn[0] == batched[0] == "warning"
    assert stubborn[1].startswith(
        "the task 'stubborn' goes past the guard (Stubborn cannot be wrapped: __class__ stays"
    )
    assert batched[1].startswith("the task 'batched' goes past the guard (Batched cannot be wrapped: its Strategy")


async def test_a_queue_and_a_broker_where_no_worker_listens_are_found(
    celery_system: CelerySystem, celery_bench: Bench
) -> None:
    await celery_system.start()
    await eventually(lambda: celery_bench.redis.hlen("ran:workers"))
    store, mine = celery_system.store_url, celery_system.queue
    assert await found_in(store, celery_system.app, "quick") == []
    assert await found_in(store, celery_system.app, "quick", queue=mine) == []

    ((severity, text),) = await found_in(store, celery_system.app, "quick", queue="mail")
    assert severity == "problem"
    assert text.startswith(
        f"no known worker listens on the queue 'mail' that the job is sent to (workers listen on {mine!r}): "
        "start a worker with -Q mail"
    )
    routed = app_for(celery_system.broker_url, task_routes={"quick": {"queue": "mail"}})
    assert [severity for severity, _ in await found_in(store, routed, "quick")] == ["problem"]

    elsewhere = app_for("redis://:secret@127.0.0.1:1/7", task_default_queue=mine)
    ((severity, text),) = await found_in(store, elsewhere, "quick", retention=timedelta(days=1))
    assert severity == "warning"
    assert text.startswith(f"it is sent to 127.0.0.1:1/7, and the workers on the queue {mine!r} listen at 127.0.0.1:")
    assert text.endswith("is that the same broker?")


@pytest.mark.parametrize(
    "url, place",
    [
        ("redis://:secret@broker/3", "broker:6379/3"),
        ("redis://broker:6380", "broker:6380/0"),
        ("redis://", "localhost:6379/0"),
        ("rediss://user:secret@broker/1", "broker:6379/1"),
        ("redis+socket:///run/redis.sock?virtual_host=2", "/run/redis.sock/2"),
        ("redis+socket:///run/redis.sock", "/run/redis.sock/0"),
        ("amqp://user:secret@rabbit//", "rabbit:5672/%2F"),
        ("amqp://user:secret@rabbit:5673/shop", "rabbit:5673/shop"),
        ("redis://a:1/0;redis://b:2/0", ""),
        ("sentinel://a:26379", ""),
        ("memory://", ""),
    ],
)
def test_a_place_is_said_without_a_password(url: str, place: str) -> None:
    assert place_of(app_for(url).connection_for_write()) == place


@pytest.mark.parametrize(
    "conf, options, queue",
    [
        ({}, {}, "celery"),
        ({"task_default_queue": "shop"}, {}, "shop"),
        ({"task_routes": {"send_*": {"queue": "mail"}}}, {}, "mail"),
        ({"task_routes": {"send_*": {"queue": "mail"}}}, {"queue": "quick"}, "quick"),
        ({"task_routes": {"send_*": {"exchange": "topics", "routing_key": "mail.send"}}}, {}, None),
        ({}, {"exchange": "topics", "routing_key": "mail.send"}, None),
    ],
)
def test_the_queue_of_a_job_is_what_celerys_routes_say(
    conf: dict[str, Any], options: dict[str, Any], queue: str | None
) -> None:
    slots = SlotQueue("redis://localhost:1/0", enqueuer=CeleryEnqueuer(app_for("memory://", **conf)))
    job = slots.add("send_digest", Every(hours=1), on_crash="skip", options=options)
    enqueuer = slots.enqueuers["celery"]
    assert isinstance(enqueuer, CeleryEnqueuer)
    assert enqueuer.queue_of(job) == queue


def test_a_worker_listens_on_the_queues_that_it_was_given() -> None:
    app = app_for("memory://")
    assert queues_listened_to(app) == ["celery"]
    app.amqp.queues.select(["mail", "quick"])
    assert queues_listened_to(app) == ["mail", "quick"]
