"""The claim pattern as plain functions on redis-py's async client, for a handful of jobs inside a service.

No `SlotQueue`, no records, no policies: a claim or a lease is one key, and its name is the slot key, so that a job may
move to a `SlotQueue` without its slots being decided a second time. `run_once` claims first (a crash skips the slot),
`run_to_completion` takes a lease and leaves a done marker (a crash repeats the slot), `sweep` does so for the newest
slots, `enqueue_once` puts one arq job on its queue, and `run_exclusive` is a lock with a token.

The completion recipe takes its lease first and looks for the done marker then. The other way round, a replica that
pauses between the two runs a slot that another one has completed meanwhile.

Source: the guide on running singleton jobs across replicas; the lock is that of the guide on distributed cron.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from time import monotonic
from typing import Any, Protocol, TypeAlias

from redis.asyncio import Redis
from redis.exceptions import RedisError

from slotqueue.errors import ConfigurationError
from slotqueue.process import process_id
from slotqueue.slots import DEFAULT_NAMESPACE, check_name, slot_key

__all__ = ["enqueue_once", "run_exclusive", "run_once", "run_to_completion", "sweep"]

logger = logging.getLogger("slotqueue.recipes")

Function: TypeAlias = Callable[[], Coroutine[Any, Any, object]]
_KEPT, _KEPT_PERIODS = timedelta(days=1), 10
"""How long claims and done markers live, whichever is longer: longer than anybody asks for their slot."""

_RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
_RELEASE = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"
_FINISH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[1])
return 1
"""


class ArqQueue(Protocol):
    """What `enqueue_once` needs of arq's pool."""

    def enqueue_job(self, function: str, *args: Any, _job_id: str | None = None) -> Awaitable[object]:  # noqa: ANN401
        """Put a job on the queue; None where there is one of this id already."""
        ...


async def run_once(
    r: Redis,
    job: str,
    scheduled: datetime,
    period: timedelta,
    fn: Function,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    replica: str | None = None,
) -> bool:
    """Run a slot on the replica that claims it. A crash skips the slot: it stays claimed, and nobody runs it again.

    Args:
        r: redis-py's async client.
        job: the job's name.
        scheduled: aware instant within the slot; floored to `period` from the Unix epoch in UTC.
        period: > 0; the claim lives for ten of it, a day at least.
        fn: called without arguments and awaited.
        namespace: begins every key.
        replica: what the claim says of its owner; default: host, pid and a random part.

    Returns:
        Whether it ran here.

    Raises:
        InvalidSlotKey: a naive instant, a period that is not positive, a name that cannot stand in a key.
        Exception: what `fn` raised; the slot stays claimed. Or redis-py's error: whether it was claimed is not known.
    """
    key = slot_key(job, scheduled, period, namespace=namespace)
    if not await r.set(key, replica or _replica_id(), nx=True, px=_kept(period)):
        logger.info("skipping %s: another replica has claimed it", key)
        return False
    logger.info("running %s", key)
    await fn()
    return True


async def run_to_completion(
    r: Redis,
    job: str,
    scheduled: datetime,
    period: timedelta,
    fn: Function,
    lease_s: float = 60,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    replica: str | None = None,
) -> bool:
    """Run a slot until some replica has completed it. A crash repeats the slot: `fn` must bear to be run again.

    The lease is renewed while `fn` runs; where it is lost all the same, `fn` is cancelled, and no done marker written.
    A cancellation gives the lease back at once; after an error of `fn` the lease runs out, so that a job that fails is
    not tried again at every tick. Code that blocks the event loop for longer than the lease loses it.

    Args:
        r, job, scheduled, period, fn, namespace, replica: see `run_once`.
        lease_s: seconds, > 0: how long a replica that fell silent keeps the slot.

    Returns:
        Whether it was completed here. False: it is done, or another replica runs it, or the lease was lost.

    Raises:
        InvalidSlotKey: see `run_once`.
        ConfigurationError: a lease that is not positive.
        Exception: what `fn` raised. Or redis-py's error: ask again.
    """
    key = slot_key(job, scheduled, period, namespace=namespace)
    me = replica or _replica_id()
    lock = _Lock(r, f"{key}:lease", me, lease_s)
    if not await lock.take():
        return False
    try:
        if await r.exists(f"{key}:done"):
            await lock.release()
            return False
        logger.info("running %s", key)
        if await lock.run(fn) and await lock.finish(f"{key}:done", me, _kept(period)):
            return True
    except asyncio.CancelledError:
        await asyncio.shield(lock.release())
        raise
    logger.warning("%s lost its lease, and counts as not done", key)
    return False


async def sweep(
    r: Redis,
    job: str,
    period: timedelta,
    fn: Function,
    lookback: int = 3,
    lease_s: float = 60,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    replica: str | None = None,
) -> int:
    """Run the current slot and those of the newest before it that nobody has completed, oldest first.

    Args:
        r, job, period, fn, lease_s, namespace, replica: see `run_to_completion`.
        lookback: how many slots before the current one are worth it, >= 0; their done markers must still be there:
            8 at most, more where a day holds more than ten periods.

    Returns:
        How many were completed here.

    Raises:
        ConfigurationError: a lookback out of bounds.
        ExceptionGroup: what `fn` raised, one each; the other slots were seen to all the same.
    """
    if lookback < 0 or (lookback + 2) * period > _kept(period):
        raise ConfigurationError(
            f"{lookback} is not between 0 and {_kept(period) // period - 2}; older slots have no done markers any more "
            "and would run again",
            job=job,
            argument="lookback",
        )
    seconds, micros = await r.time()  # not this host's clock: two replicas must not disagree on what is current
    now = datetime.fromtimestamp(int(seconds), UTC) + timedelta(microseconds=int(micros))
    completed, errors = 0, []
    for back in range(lookback, -1, -1):
        at = now - back * period
        try:
            completed += await run_to_completion(r, job, at, period, fn, lease_s, namespace=namespace, replica=replica)
        except Exception as error:  # noqa: BLE001 - one slot that fails must not keep the newer ones from running
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {lookback + 1} slots of {job!r} failed", errors)
    return completed


async def enqueue_once(
    r: Redis,
    arq: ArqQueue,
    job: str,
    scheduled: datetime,
    period: timedelta,
    *args: Any,  # noqa: ANN401 - the job's own
    namespace: str = DEFAULT_NAMESPACE,
    replica: str | None = None,
) -> bool:
    """Put one arq job for a slot on its queue, under the slot key as its id; arq's workers run and retry it.

    A replica that dies between the claim and the enqueue leaves a slot that nobody enqueues.

    Args:
        r, scheduled, period, namespace, replica: see `run_once`.
        arq: `await arq.create_pool(...)`.
        job: the job's name, and arq's function.
        args: the function's arguments.

    Returns:
        Whether this replica claimed the slot.

    Raises:
        InvalidSlotKey: see `run_once`.
        Exception: redis-py's or arq's; what was claimed stays claimed.
    """
    key = slot_key(job, scheduled, period, namespace=namespace)
    if not await r.set(key, replica or _replica_id(), nx=True, px=_kept(period)):
        return False
    await arq.enqueue_job(job, *args, _job_id=key)
    return True


async def run_exclusive(
    r: Redis,
    job: str,
    fn: Function,
    lease_s: float = 60,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    replica: str | None = None,
) -> bool:
    """Run `fn` unless it runs elsewhere. It knows no slots: who comes after the end runs it again.

    The lock holds a token, is renewed while `fn` runs, and is released by compare-and-delete: never another's.

    Args:
        r, job, fn, namespace, replica: see `run_once`.
        lease_s: seconds, > 0: how long a replica that fell silent keeps the lock.

    Returns:
        Whether it ran here to its end. False: it runs elsewhere, or the lock was lost and `fn` was cancelled.

    Raises:
        InvalidSlotKey: a name that cannot stand in a key.
        ConfigurationError: a lease that is not positive.
        Exception: what `fn` raised; the lock is released.
    """
    check_name(job)
    lock = _Lock(r, f"{namespace}:{job}:lock", replica or _replica_id(), lease_s)
    if not await lock.take():
        return False
    try:
        return await lock.run(fn)
    finally:
        await asyncio.shield(lock.release())


class _Lock:
    """A key that holds a token of ours, as long as we are heard of."""

    def __init__(self, r: Redis, key: str, owner: str, lease_s: float) -> None:
        if not lease_s > 0:
            raise ConfigurationError(f"{lease_s!r} is not positive; say seconds", argument="lease_s")
        self._r = r
        self._key = key
        self._token = f"{owner}/{secrets.token_hex(8)}"
        self._lease_s = lease_s
        self._lease_ms = max(1, int(lease_s * 1000))
        self._good_until = 0.0

    async def take(self) -> bool:
        sent = monotonic()
        is_ours = bool(await self._r.set(self._key, self._token, nx=True, px=self._lease_ms))
        self._good_until = sent + self._lease_s
        return is_ours

    async def run(self, fn: Function) -> bool:
        """Run and renew. False where the lock was lost: `fn` has been cancelled."""
        running = asyncio.ensure_future(fn())
        keeping = asyncio.create_task(self._keep())
        try:
            await asyncio.wait({running, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
                return True
            return False
        finally:
            for each in (running, keeping):
                each.cancel()
            await asyncio.gather(running, keeping, return_exceptions=True)

    async def finish(self, done: str, owner: str, kept: timedelta) -> bool:
        """Write the done marker and release, unless the lock is lost."""
        kept_ms = kept // timedelta(milliseconds=1)
        return bool(await self._r.register_script(_FINISH)([self._key, done], [self._token, owner, kept_ms]))

    async def release(self) -> None:
        """Release it, unless it is another's by now. Where Redis is away it runs out by itself."""
        with suppress(RedisError, OSError):
            await self._r.register_script(_RELEASE)([self._key], [self._token])

    async def _keep(self) -> None:
        """Renew the lock until it is lost, by the clock of this process or by Redis's word."""
        renew, pause = self._r.register_script(_RENEW), self._lease_s / 3
        while (left := self._good_until - monotonic()) > 0:
            await asyncio.sleep(min(pause, left))
            sent, pause = monotonic(), self._lease_s / 10
            try:
                async with asyncio.timeout(self._good_until - sent):
                    is_ours = await renew([self._key], [self._token, self._lease_ms])
            except (RedisError, OSError, TimeoutError):
                continue
            if not is_ours:
                return
            self._good_until, pause = sent + self._lease_s, self._lease_s / 3


def _kept(period: timedelta) -> timedelta:
    return max(_KEPT, period * _KEPT_PERIODS)


def _replica_id() -> str:
    return _replica_id_of(os.getpid())  # a forked child is another replica


@cache
def _replica_id_of(pid: int) -> str:  # noqa: ARG001 - the cache's key
    return process_id()
