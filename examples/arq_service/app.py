"""A rollup that must complete and a digest that must not repeat: the same code on every replica and worker."""

import os

from arq.connections import RedisSettings

from slotqueue import Cron, Every, Policy, SlotQueue, current_slot
from slotqueue.enqueuers.arq import ArqEnqueuer

REDIS = os.environ.get("REDIS_URL", "redis://localhost:6379/0")
LEDGER = os.environ.get("LEDGER", "ledger")

slots = SlotQueue(REDIS, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="skip"))
slots.add("rollup", Cron("0 3 * * *", tz="Europe/Berlin"), on_crash="complete", on_failure="again")
slots.add("charge", Every(seconds=2), on_crash="complete", kwargs={"customers": ["ada", "grace"]})
slots.add("digest", Every(minutes=5), task="send_digest", kwargs={"kind": "short"}, expires=60)


async def rollup(ctx):
    start, end = current_slot().interval
    print(f"rolling up what came from {start} to {end}")


async def charge(ctx, customers):
    slot = current_slot()
    for customer in customers:
        # A repeat finds the key taken: the effect happens once, however often the function begins.
        if await ctx["redis"].set(slot.idempotency_key("charge", customer), "1", nx=True, ex=86_400):
            await ctx["redis"].rpush(LEDGER, f"{slot.fire_time:%H:%M:%S} {customer}")


async def send_digest(ctx, kind):
    print(f"sending the {kind} digest of {current_slot().fire_time}")


@slots.worker
class WorkerSettings:
    functions = [rollup, charge, send_digest]
    redis_settings = RedisSettings.from_dsn(REDIS)
