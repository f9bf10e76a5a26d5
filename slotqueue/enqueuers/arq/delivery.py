"""One message in an arq worker: is it a slot, may it run, and how does its run end.

arq knows a message by its id alone, and all deliveries of a slot share one id. So a delivery that must not run now
ends in `arq.Retry`, never in a plain return: arq would clear away the message of whoever holds the slot. Only where
the slot is over the message is let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn, cast

from arq.connections import ArqRedis
from arq.constants import job_key_prefix, retry_key_prefix
from arq.worker import Retry, RetryJob
from redis.exceptions import RedisError

from slotqueue.answers import Dropped, Word
from slotqueue.enqueuers.arq.guarded import Connection, Guarded
from slotqueue.enqueuers.arq.payload import slip_in
from slotqueue.errors import StoreUnavailable
from slotqueue.events import Event
from slotqueue.guard_events import MessageForeign, MessageHandedBack
from slotqueue.hold import AsyncHold, Fail, Postpone, describe
from slotqueue.messages import Slip
from slotqueue.patience import unharmed
from slotqueue.policy import Terms
from slotqueue.protocols import ANY_FENCE
from slotqueue.slots import is_slot_key, parse_key

AWAY_MS = 10_000
"""How long a message waits that found the store away, or a worker of another namespace."""
_LONGEST_BUSY_MS = 30_000


async def deliver(guarded: Guarded, ctx: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """Run a function for a message: a slot under the guard, anything else as it is."""
    if isinstance(ctx, Mapping):
        message_id = ctx.get("job_id")
        if isinstance(message_id, str) and is_slot_key(message_id):
            return await _Delivery(guarded, ctx, message_id).run(args, kwargs)
    return await guarded.function(ctx, *args, **kwargs)


class _Delivery:
    """One delivery of a message that may be a slot."""

    def __init__(self, guarded: Guarded, ctx: Mapping[Any, Any], message_id: str) -> None:
        self.id = message_id
        self._guarded = guarded
        self._ctx = ctx
        self._redis: ArqRedis = ctx["redis"]
        self._limits = guarded.limits
        self._is_last_try = not self._limits.is_retrying or ctx.get("job_try", 1) >= self._limits.max_tries
        timeout = self._limits.own_timeout
        self._deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        self._connection = next(iter(guarded.connections.values()))
        self._has_begun = False

    async def run(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        slip = await self._slip()
        if slip is None:
            return await self._guarded.function(self._ctx, *args, **kwargs)
        self._connection = await self._connection_of(slip)
        try:
            answer = await self._connection.guard.begin(
                slip, from_fence=ANY_FENCE, judge=self._judge, patience=self._limits.patience
            )
        except StoreUnavailable as error:
            await self._hand_back(AWAY_MS, f"no guard, no run: {error}", error)
        except asyncio.CancelledError:
            await self._cancelled()
            raise
        if not isinstance(answer, Dropped):
            return await self._run(answer, args, kwargs)
        if answer.why is Word.BUSY:
            wait = min(max(Terms.parse(slip.terms).lease // 2, 1000), _LONGEST_BUSY_MS)
            await self._hand_back(wait, "the slot is being run")
        if answer.why is Word.BROKEN:
            await self._hand_back(AWAY_MS, f"the slot's keys in Redis cannot be used: {answer.detail}")
        return None

    async def _run(self, hold: AsyncHold, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        result = None
        try:
            async with hold:
                self._begin_in_time()
                async with asyncio.timeout_at(self._deadline):
                    result = await self._guarded.function(self._ctx, *args, **kwargs)
        except asyncio.CancelledError:
            await self._cancelled()
            raise
        except Exception as error:
            if hold.outcome is Word.STALE or not self._has_begun:
                await self._hand_back(0, "the slot was taken over" if self._has_begun else "begin took too long", error)
            raise
        if hold.outcome is Word.STALE:
            await self._hand_back(min(hold.run.terms.lease, _LONGEST_BUSY_MS), "the slot was taken over")
        return result

    def _begin_in_time(self) -> None:
        if self._is_time_up():
            raise Retry
        self._has_begun = True

    def _judge(self, error: BaseException) -> Postpone | Fail:
        """Say what an exception means in arq, which is about to see it too."""
        if not self._has_begun:
            return Postpone("handed back before it ran")
        if isinstance(error, asyncio.CancelledError) and _is_cancelled_outside():
            return self._judge_cancelled()
        if isinstance(error, Retry | RetryJob | asyncio.CancelledError) and self._is_last_try:
            return Fail(f"retries exhausted: {describe(error)}")
        if isinstance(error, TimeoutError) and self._is_time_up():
            return self._timed_out()
        return judge_first_try(error)

    def _judge_cancelled(self) -> Postpone | Fail:
        """Tell a stop from a time-out and an abort. Our own time-out comes first, unless code blocked the loop."""
        if self._connection.is_stopping in (True, None):
            return Postpone("the worker stops") if self._limits.is_retrying else Fail("cancelled, and retry_jobs=False")
        if self._is_time_up():
            return self._timed_out()
        return Fail("aborted in arq")

    def _timed_out(self) -> Fail:
        return Fail(f"TimeoutError: still running after {self._limits.own_timeout:g} s")

    async def _slip(self) -> Slip | None:
        """Read the slip; None for somebody's own message under an id that looks like a slot key."""
        try:
            payload = await self._redis.get(job_key_prefix + self.id)
        except (RedisError, OSError) as error:
            raise Retry(AWAY_MS / 1000) from error
        if payload is None:  # let go by another delivery since arq read it
            raise Retry
        try:
            return slip_in(payload, self._guarded.deserializer or self._redis.job_deserializer)
        except ValueError as error:
            await self._hand_back(AWAY_MS, str(error), error, is_foreign=True)

    async def _connection_of(self, slip: Slip) -> Connection:
        namespace = parse_key(slip.key).namespace
        found = self._guarded.connections.get(namespace)
        if found is None:
            known = ", ".join(self._guarded.connections)
            why = f"it is a slot of the namespace {namespace!r}, and this worker knows only {known}"
            await self._hand_back(AWAY_MS, why, is_foreign=True)
        return found

    async def _cancelled(self) -> None:
        """See to it that a cancellation costs the message no try where it is no fault of the job."""
        if self._connection.is_stopping:
            await self._undo(None)
        elif not self._has_begun and self._is_time_up():  # arq would take it for a job that is too slow
            await self._hand_back(AWAY_MS, "begin took too long")

    async def _hand_back(
        self, delay_ms: int, why: str, error: Exception | None = None, *, is_foreign: bool = False
    ) -> NoReturn:
        """Leave the message to arq for a while, without spending a try."""
        event: Event = MessageHandedBack(self.id, parse_key(self.id).job, why, delay_ms)
        self._connection.guard.emit(MessageForeign(self.id, why) if is_foreign else event)
        raise Retry(None if await self._undo(delay_ms) else delay_ms / 1000) from error

    async def _undo(self, delay_ms: int | None) -> bool:
        """Take the try back, and put the message off; False where arq's Redis did not do it."""
        keys = (retry_key_prefix + self.id, self._guarded.queue_name or self._redis.default_queue_name)
        try:
            await unharmed(_eval(self._redis, *keys, self.id, "" if delay_ms is None else str(delay_ms)))
        except (RedisError, OSError):
            return False
        return True

    def _is_time_up(self) -> bool:
        return self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline


def judge_first_try(error: BaseException) -> Postpone | Fail:
    """Say what an exception of a first try means in arq, where nobody stops the worker."""
    if isinstance(error, Retry | RetryJob | asyncio.CancelledError):
        return Postpone(type(error).__name__, error.defer_score or 0 if isinstance(error, Retry) else 0)
    return Fail(describe(error))


def _is_cancelled_outside() -> bool:
    """Whether somebody cancelled this task; a function may raise `CancelledError` all by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _eval(redis: ArqRedis, *keys_and_args: str) -> None:
    await cast("Awaitable[object]", redis.eval(_script(), 2, *keys_and_args))


@cache
def _script() -> str:
    return (files("slotqueue.enqueuers.arq") / "hand_back.lua").read_text(encoding="utf-8")
