"""A rollup that must complete and a digest that must not repeat: every Celery worker is a replica too."""

import os

from celery import Celery
from redis import Redis

from slotqueue import Cron, Every, Policy, SlotQueue, current_slot
from slotqueue.bootstep import tick_in_workers
from slotqueue.enqueuers.celery import CeleryEnqueuer

BROKER = os.environ.get("BROKER_URL", "redis://localhost:6379/0")  # or RabbitMQ: amqp://guest:guest@localhost//
REDIS = os.environ.get("REDIS_URL", "redis://localhost:6379/0")
LEDGER = os.environ.get("LEDGER", "ledger")

app = Celery("app", broker=BROKER)
app.conf.broker_connection_retry_on_startup = True

slots = SlotQueue(REDIS, enqueuer=CeleryEnqueuer(app), defaults=Policy(on_crash="skip"))
slots.add("rollup", Cron("0 3 * * *", tz="Europe/Berlin"), on_crash="complete", on_failure="again")
slots.add("charge", Every(seconds=2), on_crash="complete", kwargs={"customers": ["ada", "grace"]})
slots.add("digest", Every(minutes=5), task="send_digest", kwargs={"kind": "short"}, options={"expires": 60})
tick_in_workers(app, slots)  # no beat, and no other process: `celery worker` is all there is

books = Redis.from_url(REDIS, decode_responses=True)


@app.task(name="rollup")
def rollup():
    start, end = current_slot().interval
    print(f"rolling up what came from {start} to {end}")


@app.task(name="charge", autoretry_for=(OSError,), retry_backoff=True)
def charge(customers):
    slot = current_slot()
    for customer in customers:
        # A repeat finds the key taken: the effect happens once, however often the task begins.
        if books.set(slot.idempotency_key("charge", customer), "1", nx=True, ex=86_400):
            books.rpush(LEDGER, f"{slot.fire_time:%H:%M:%S} {customer}")


@app.task(name="send_digest")
def send_digest(kind):
    print(f"sending the {kind} digest of {current_slot().fire_time}")
