"""How the function of a job is called in this process, whichever worker system runs it in production."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from slotqueue.answers import Dropped
from slotqueue.app import SlotQueue
from slotqueue.enqueuers.inprocess import InProcessEnqueuer
from slotqueue.enqueuers.inprocess.functions import Function as InProcessFunction
from slotqueue.enqueuers.inprocess.run import SlotRun
from slotqueue.errors import ConfigurationError, MissingExtra
from slotqueue.guard import AsyncGuard
from slotqueue.hold import Judge, judge_plainly
from slotqueue.messages import Message
from slotqueue.protocols import Enqueuer

logger = logging.getLogger("slotqueue.testing")

Function = Callable[..., Any]
Call = Callable[[Message], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class Target:
    """What a message makes run.

    Args:
        call: runs it to its end; answers what it answers, raises what it raises.
        judge: says what an exception means in its worker system.
    """

    call: Call
    judge: Judge = judge_plainly

    async def deliver(self, guard: AsyncGuard, message: Message) -> None:
        """Hand a message over: begin its slot, call, and say how that ended; what was raised is logged."""
        answer = await guard.begin(message.slip, from_fence="", judge=self.judge)
        if isinstance(answer, Dropped):
            return
        try:
            async with answer:
                await self.call(message)
        except Exception:
            logger.exception("the function of %s raised", message.slip.key)


@dataclass(frozen=True, slots=True)
class InProcess:
    """A function of this process, for which production has no other way either."""

    function: InProcessFunction

    async def deliver(self, guard: AsyncGuard, message: Message) -> None:
        """See `Target.deliver`."""
        await SlotRun(message, self.function, guard).run()


def target_of(
    slots: SlotQueue, enqueuer: Enqueuer, task: str, *, function: Function | None, ctx: Mapping[str, Any]
) -> Target | InProcess:
    """Find out what a task's messages make run.

    Args:
        slots: the application.
        enqueuer: of the job.
        task: the function's name in the worker system.
        function: in place of what is found.
        ctx: more entries of the `ctx` that a function of arq gets.

    Raises:
        ConfigurationError: nothing is known of that task; the message says what to do.
    """
    if isinstance(enqueuer, InProcessEnqueuer):
        known = InProcessFunction(task, function) if function is not None else enqueuer.function_of(task)
        if known is not None:
            return InProcess(known)
    for find in (_in_arq, _in_celery):
        found = find(slots, enqueuer, task, function, ctx)
        if found is not None:
            return found
    if function is None:
        raise ConfigurationError(f"nobody knows the function of the task {task!r} here; give function=...")
    return Target(partial(_call, function))


def _in_arq(
    slots: SlotQueue, enqueuer: Enqueuer, task: str, function: Function | None, ctx: Mapping[str, Any]
) -> Target | None:
    with suppress(MissingExtra):
        from slotqueue.enqueuers.arq import ArqEnqueuer  # noqa: PLC0415 - an extra
        from slotqueue.enqueuers.arq.delivery import judge_first_try  # noqa: PLC0415 - as above
        from slotqueue.enqueuers.arq.worker import function_of  # noqa: PLC0415 - as above

        if not isinstance(enqueuer, ArqEnqueuer):
            return None
        if function is None:
            function = next((each for each in (function_of(one, task) for one in slots.worker_settings) if each), None)
        if function is None:
            raise ConfigurationError(
                f"no class with @slots.worker has the function {task!r} of arq; import the module that has it, "
                "or give function=..."
            )

        async def call(message: Message) -> object:
            about = {"job_id": message.slip.key, "job_try": 1, "enqueue_time": datetime.now(UTC), "score": 0, **ctx}
            return await _call(partial(function, about), message)

        return Target(call, judge_first_try)
    return None


def _in_celery(
    slots: SlotQueue,  # noqa: ARG001 - as the others
    enqueuer: Enqueuer,
    task: str,
    function: Function | None,
    ctx: Mapping[str, Any],  # noqa: ARG001 - as the others
) -> Target | None:
    with suppress(MissingExtra):
        from slotqueue.enqueuers.celery import CeleryEnqueuer  # noqa: PLC0415 - an extra

        if not isinstance(enqueuer, CeleryEnqueuer) or function is not None:
            return None
        found = enqueuer.app.tasks.get(task)
        if found is None:
            raise ConfigurationError(
                f"the Celery application has no task {task!r} here; import the module that has it, or give function=..."
            )

        async def call(message: Message) -> object:
            result = await asyncio.to_thread(
                found.apply, message.args, dict(message.kwargs), task_id=message.slip.key, throw=True
            )
            return result.get()

        return Target(call)
    return None


async def _call(function: Function, message: Message) -> object:
    """Call a function with a message's arguments; sync code in a thread, where the current slot is known too."""
    if _is_async(function):
        return await function(*message.args, **message.kwargs)
    return await asyncio.to_thread(function, *message.args, **message.kwargs)


def _is_async(function: Function) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
