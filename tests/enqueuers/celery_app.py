"""The module that test workers are started with: `celery -A tests.enqueuers.celery_app worker`."""

from __future__ import annotations

import contextvars
import json
import os
import threading
import time
from typing import Any

import celery
import redis
from celery.exceptions import Ignore, Reject

from slotqueue.app import SlotQueue
from slotqueue.current import current_slot
from slotqueue.enqueuers.celery import CeleryEnqueuer, delivery
from slotqueue.errors import NotInSlot

APP: dict[str, Any] = json.loads(os.environ["TEST_APP"])
app = celery.Celery("tests", broker=APP["broker_url"], backend=APP["effects_url"])
app.conf.update(APP["conf"])

if APP.get("finalize_first"):
    app.finalize()
if APP["is_guarded"]:
    slots = SlotQueue(
        APP["store_url"],
        namespace=APP["namespace"],
        enqueuer=CeleryEnqueuer(app),
        replicas_to_ack=APP["replicas_to_ack"],
    )

delivery.AWAY_MS = 2_000  # a message that found the store away comes back sooner than in the field

_effects: dict[int, Any] = {}


def effects() -> Any:
    """A connection of this very process."""
    if os.getpid() not in _effects:
        _effects[os.getpid()] = redis.Redis.from_url(APP["effects_url"])
    return _effects[os.getpid()]


def mark(task: Any, what: str) -> None:
    """Leave a mark."""
    about = {"what": what, "try": task.request.retries + 1, "pid": os.getpid()}
    effects().rpush(f"effects:{task.request.id}", json.dumps(about))


@app.task(bind=True, name="quick")
def quick(self: Any, *args: object, **kwargs: object) -> str:
    mark(self, "ran")
    return "quickly"


@app.task(bind=True, name="tells")
def tells(self: Any, **kwargs: object) -> None:
    try:
        slot = current_slot()
    except NotInSlot:
        mark(self, "no slot")
        return
    seen: list[object] = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(lambda: seen.append(current_slot()),))
    thread.start()
    thread.join()
    told = {
        "key": slot.key,
        "job": slot.job,
        "fire_time": slot.fire_time.isoformat(),
        "start": slot.interval.start.isoformat(),
        "end": slot.interval.end.isoformat(),
        "attempt": slot.attempt,
        "is_same_in_thread": seen == [slot],
        "kwargs": kwargs,
        "headers": {name: str(value) for name, value in (self.request.headers or {}).items()},
    }
    mark(self, json.dumps(told))


@app.task(bind=True, name="slow")
def slow(self: Any, seconds: float) -> None:
    mark(self, "began")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not effects().exists("go"):
        time.sleep(0.05)
    mark(self, "ended")


@app.task(bind=True, name="blocks")
def blocks(self: Any, seconds: float) -> None:
    mark(self, "began")
    time.sleep(seconds)
    mark(self, "ended")


@app.task(bind=True, name="fails")
def fails(self: Any) -> None:
    mark(self, "failing")
    raise ValueError("no such customer")


@app.task(bind=True, name="fails_long")
def fails_long(self: Any) -> None:
    raise ValueError("é" * 5000)


@app.task(bind=True, name="mends")
def mends(self: Any) -> None:
    if current_slot().attempt == 1:
        mark(self, "failing")
        raise ValueError("no such customer")
    mark(self, "ran")


@app.task(bind=True, name="retries", max_retries=None)
def retries(self: Any, times: int, delay: float = 0) -> None:
    if self.request.retries < times:
        mark(self, "retrying")
        raise self.retry(countdown=delay)
    mark(self, "ran")


@app.task(bind=True, name="retries_itself", autoretry_for=(ValueError,), max_retries=2, default_retry_delay=0)
def retries_itself(self: Any, times: int = 99) -> None:
    mark(self, "trying")
    if self.request.retries < times:
        raise ValueError("not yet")


@app.task(bind=True, name="retries_quietly")
def retries_quietly(self: Any, fails: bool = False) -> str:
    if self.request.retries:
        mark(self, "ran")
        return "at last"
    mark(self, "retrying")
    self.retry(countdown=0.5, throw=False)
    if fails:
        raise ValueError("after the retry was sent")
    return "not yet"


@app.task(bind=True, name="gives_up", max_retries=1)
def gives_up(self: Any, with_error: bool) -> None:
    mark(self, "trying")
    raise self.retry(exc=ValueError("no such customer") if with_error else None, countdown=0)


@app.task(bind=True, name="replaces")
def replaces(self: Any, by: str) -> None:
    mark(self, "replacing")
    later = {
        "task": quick.s(),
        "failure": fails.s(),
        "elsewhere": app.signature("elsewhere"),
        "chain": quick.s() | quick.s(),
    }
    self.replace(later[by].set(countdown=0.5))


@app.task(name="plain")
def plain() -> None:
    mark(celery.current_task, "ran")


@app.task(bind=True, name="dies")
def dies(self: Any) -> None:
    mark(self, "began")
    os.kill(os.getpid(), 9)


@app.task(bind=True, name="ignores")
def ignores(self: Any) -> None:
    mark(self, "ran")
    raise Ignore


@app.task(bind=True, name="rejects")
def rejects(self: Any, requeue: bool) -> None:
    mark(self, "ran")
    if not self.request.delivery_info.get("redelivered"):
        raise Reject("not now", requeue=requeue)


# ---- bases that go past the application's own


class Stranger(celery.Task):  # type: ignore[misc] # no types
    """Derives from Celery's class, not from the application's, and calls nobody's `__call__`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mark(self, "called")
        return self.run(*args, **kwargs)


class Polite(app.Task):  # type: ignore[misc,name-defined] # no types
    """Derives from the application's class, and lets it do its part."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mark(self, "called")
        return super().__call__(*args, **kwargs)


class Whole(celery.Task):  # type: ignore[misc] # no types
    """A class that does all its work in `__call__`."""

    name = "whole"

    def __call__(self) -> None:
        mark(self, "ran")


class Stubborn(celery.Task):  # type: ignore[misc] # no types
    """A class that lets nothing of it be replaced."""

    name = "stubborn"

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("run", "__class__"):
            raise AttributeError(f"{name} stays as it is")
        super().__setattr__(name, value)

    def run(self) -> None:
        mark(self, "ran")


class Batched(celery.Task):  # type: ignore[misc] # no types
    """A class whose messages never come to Celery's tracer, as those of celery-batches."""

    name = "batched"

    def Strategy(self, task: Any, app: Any, consumer: Any) -> Any:  # noqa: N802 - as Celery calls it
        return lambda *args, **kwargs: None

    def run(self) -> None:
        mark(self, "ran")


class Classy(app.Task):  # type: ignore[misc,name-defined] # no types
    name = "classy"

    def run(self, kind: str) -> None:
        mark(self, f"ran {kind}")


app.register_task(Whole())
app.register_task(Classy())
if APP.get("stubborn"):
    app.register_task(Stubborn())
    app.register_task(Batched())


@app.task(base=Stranger, bind=True, name="strange")
def strange(self: Any) -> None:
    mark(self, "ran")


@app.task(base=Polite, bind=True, name="polite")
def polite(self: Any) -> None:
    mark(self, "ran")


@celery.shared_task(bind=True, name="shared")
def shared(self: Any) -> None:
    mark(self, "ran")
