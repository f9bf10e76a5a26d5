"""One service, two kinds of jobs: light ones run in the service itself, heavy ones go to its arq workers."""

import os
from contextlib import asynccontextmanager

from arq.connections import RedisSettings
from fastapi import FastAPI, Response
from redis.asyncio import Redis

from slotqueue import Every, Policy, SlotQueue, current_slot
from slotqueue.enqueuers.arq import ArqEnqueuer

REDIS = os.environ.get("REDIS_URL", "redis://localhost:6379/0")
LEDGER = os.environ.get("LEDGER", "ledger")

slots = SlotQueue(REDIS, enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
slots.add("report", Every(seconds=2))


@asynccontextmanager
async def lifespan(app):
    async with Redis.from_url(REDIS, decode_responses=True) as app.state.redis, slots.lifespan(app):
        yield


app = FastAPI(lifespan=lifespan)


@slots.job(Every(seconds=2), on_crash="skip")  # the next one comes soon enough
async def refresh_rates():
    at = f"{current_slot().fire_time:%H:%M:%S}"
    await app.state.redis.hset("rates", mapping={"EUR": "1.08", "at": at})
    await app.state.redis.rpush(LEDGER, f"{at} rates")


async def report(ctx):
    await ctx["redis"].rpush(LEDGER, f"{current_slot().fire_time:%H:%M:%S} report")


@slots.worker
class WorkerSettings:
    functions = [report]
    redis_settings = RedisSettings.from_dsn(REDIS)


@app.get("/rates")
async def rates():
    return await app.state.redis.hgetall("rates")


@app.get("/ready")
async def ready(response: Response):
    response.status_code = 200 if slots.is_ready else 503
    return {"ticks": slots.is_ready}
