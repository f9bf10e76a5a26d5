"""One schedule for two worker systems: a rollup goes to arq over Redis, a mail to Celery over RabbitMQ."""

import os

from arq.connections import RedisSettings
from celery import Celery

from slotqueue import Every, Policy, SlotQueue, current_slot
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.enqueuers.celery import CeleryEnqueuer

REDIS = os.environ.get("REDIS_URL", "redis://localhost:6379/0")
BROKER = os.environ.get("BROKER_URL", "amqp://guest:guest@localhost:5672//")

celery = Celery("app", broker=BROKER)
celery.conf.broker_connection_retry_on_startup = True

slots = SlotQueue(REDIS, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
slots.add("rollup", Every(seconds=5))
slots.add("mail", Every(seconds=5, offset=2), enqueuer=CeleryEnqueuer(celery), on_crash="skip")


async def rollup(ctx):
    start, end = current_slot().interval
    print(f"rolling up what came from {start:%H:%M:%S} to {end:%H:%M:%S}, attempt {current_slot().attempt}", flush=True)


@celery.task(name="mail")
def mail():
    print(f"sending the mail of {current_slot().fire_time:%H:%M:%S}", flush=True)


@slots.worker
class WorkerSettings:
    functions = [rollup]
    redis_settings = RedisSettings.from_dsn(REDIS)
