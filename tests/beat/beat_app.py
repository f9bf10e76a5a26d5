"""The Celery application of the process tests; `TEST_BEAT` says as JSON what they want of it."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

import redis
from celery import Celery
from celery.beat import BeatLazyFunc

import slotqueue.beat
import slotqueue.bootstep
from slotqueue import Every, Policy, SlotQueue
from slotqueue.enqueuers.celery import CeleryEnqueuer

SAID = json.loads(os.environ["TEST_BEAT"])
EFFECTS: Any = redis.Redis.from_url(SAID["url"], decode_responses=True)

app = Celery("tests.beat.beat_app", broker=SAID["url"])
app.conf.update(
    beat_schedule=SAID["entries"],
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
    **SAID["conf"],
)
if SAID["lazy"]:
    for entry in app.conf.beat_schedule.values():
        entry["args"] = (BeatLazyFunc(EFFECTS.incr, "evaluated"),)
if SAID["stalls"]:
    for entry in app.conf.beat_schedule.values():
        entry["args"] = (
            BeatLazyFunc(lambda: EFFECTS.set("stalled", os.getpid(), nx=True) and EFFECTS.blpop("go", 60)),
        )
if SAID["guarded"]:
    slotqueue.beat.guard(app)
if SAID["ticking_workers"]:
    slotqueue.bootstep.tick_in_workers(app)
if SAID["ticking_slots"]:
    slots = SlotQueue(SAID["url"], enqueuer=CeleryEnqueuer(app), defaults=Policy(on_crash="skip"))
    for name, job in SAID["ticking_slots"].items():
        slots.add(name, Every(seconds=job["every"]), task=job["task"], args=job["args"])
    slotqueue.bootstep.tick_in_workers(app, slots)


@app.task(name="work", bind=True)  # type: ignore[untyped-decorator]
def work(self: Any, *args: object) -> None:
    task_id = self.request.id
    EFFECTS.rpush(f"effects:{task_id}", "ran")
    names = [each.name for each in threading.enumerate() if each.name == "slotqueue"]
    EFFECTS.sadd("tickers", f"{os.getpid()}:{len(names)}")


@app.task(name="sleep", bind=True)  # type: ignore[untyped-decorator]
def sleep(self: Any, seconds: float) -> None:
    task_id = self.request.id
    EFFECTS.rpush(f"effects:{task_id}", "began")
    time.sleep(seconds)
    EFFECTS.rpush(f"effects:{task_id}", "ended")
