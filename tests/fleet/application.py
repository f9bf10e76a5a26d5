"""The application of every process of a fleet.

A replica: `python -m tests.fleet.application`. A worker: `arq tests.fleet.application.WorkerSettings`.
Each event is one line on stdout, "@" and JSON. Functions count their runs in Redis: `effects:<slot key>`.
"""

# ruff: noqa: E402 - a clock must be wrong before anybody reads it
from __future__ import annotations

import time

from tests.fleet.orders import GO, Arrow, Orders

orders = Orders.of_this_process()
if orders.clock_off:
    _real_time, _off = time.time, orders.clock_off
    time.time = lambda: _real_time() + _off
if orders.suspends:
    _real_monotonic, _last, _asleep = time.monotonic, time.monotonic(), 0.0

    def _monotonic() -> float:
        """Leave out what is longer than any sleep of a replica."""
        global _last, _asleep  # noqa: PLW0603 - a clock is global
        now = _real_monotonic()
        _asleep += now - _last if now - _last > 2 else 0
        _last = now
        return now - _asleep

    time.monotonic = _monotonic

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import asdict
from typing import Any, ClassVar

import redis
from arq.connections import RedisSettings
from arq.worker import func

import slotqueue.app
import slotqueue.store.commands
import slotqueue.worker_systems
from slotqueue import Cron, Every, Policy, SlotQueue, current_slot
from slotqueue.clock import RedisClock
from slotqueue.events import Event
from tests.fleet.deaths import STRUCK, Doom, MortalEnqueuer, MortalLine, MortalStore

broker_url = orders.broker_url or orders.effects_url
effects = redis.Redis.from_url(orders.effects_url)
doom = Doom(orders.arrow, orders.doomed, signal.Signals[orders.fate], lambda job, key: effects.hset(STRUCK, job, key))
MortalStore.doom = doom
MortalStore.sweep_ms = orders.sweep_ms
for _module in (slotqueue.app, slotqueue.worker_systems):
    setattr(_module, "AsyncStore", MortalStore)  # noqa: B010 - the seam of this application
slotqueue.store.commands.GRACE_MS = orders.grace_ms
logging.basicConfig(level=logging.WARNING, stream=sys.stderr)

if orders.late:
    _exact_ms = RedisClock.exact_ms
    setattr(RedisClock, "exact_ms", lambda clock: _exact_ms(clock) - orders.late * 1000)  # noqa: B010


def tell(event: Event) -> None:
    facts = {"event": type(event).__name__, "by": orders.name, "at": time.monotonic(), **asdict(event)}
    sys.stdout.write(f"@{json.dumps(facts)}\n")
    sys.stdout.flush()


def _mortal_enqueuer() -> MortalEnqueuer:
    is_held = (lambda: not effects.exists(GO)) if orders.holds_enqueue else (lambda: False)
    return MortalEnqueuer(broker_url, doom, enqueue_ms=orders.enqueue_ms, is_held=is_held)


slots = SlotQueue(
    orders.url,
    enqueuer=MortalLine(doom) if orders.is_here else _mortal_enqueuer(),
    namespace=orders.namespace,
    defaults=Policy(on_crash="complete", lease=orders.lease),
    replica=orders.name,
    sweep_every=orders.sweep_every,
    claim_spread=orders.claim_spread,
    on_event=tell,
)


def _add(*, name: str, every: float = 0, offset: float = 0, cron: str = "", **more: Any) -> None:
    schedule = Cron(cron) if cron else Every(seconds=every, offset=offset)
    if orders.is_here:
        slots.job(schedule, name=name, **more)(here)
    else:
        slots.add(name, schedule, **{"task": "quick", **more})


async def here() -> None:
    key = current_slot().key
    effects.rpush(f"effects:{key}", json.dumps({"what": "ran", "by": orders.name, "pid": os.getpid()}))
    doom.strike(Arrow.RUNNING, key)


for _job in orders.jobs:
    _add(**_job)


def count(ctx: dict[str, Any], what: str) -> None:
    mark = {"what": what, "by": orders.name, "try": ctx["job_try"], "pid": os.getpid()}
    effects.rpush(f"effects:{ctx['job_id']}", json.dumps(mark))


async def quick(ctx: dict[str, Any], **_kwargs: Any) -> None:
    count(ctx, "ran")
    doom.strike(Arrow.RUNNING, ctx["job_id"])


async def slow(ctx: dict[str, Any], seconds: float) -> None:
    """Take so long, or until a test lets it go."""
    count(ctx, "ran")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not effects.exists(GO):  # noqa: ASYNC110 - it is another process that lets go
        await asyncio.sleep(0.05)
    count(ctx, "ended")


async def mends(ctx: dict[str, Any]) -> None:
    count(ctx, "ran")
    if effects.llen(f"effects:{ctx['job_id']}") == 1:
        raise ValueError("not this time")


_TASKS: dict[str, Any] = {"quick": quick, "slow": slow, "mends": mends}


class WorkerSettings:
    functions: ClassVar[list[Any]] = [
        *_TASKS.values(),
        *(func(_TASKS[of], name=name, **more) for name, (of, more) in orders.functions.items()),
    ]
    redis_settings = RedisSettings.from_dsn(broker_url)
    poll_delay = 0.05
    job_timeout = 120


for _name, _value in orders.worker.items():
    setattr(WorkerSettings, _name, _value)
if orders.is_guarded:
    slots.worker(WorkerSettings)


async def main() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await slots.run(stopping)


if __name__ == "__main__":
    asyncio.run(main())
