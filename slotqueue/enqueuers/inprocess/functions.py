"""A function of this process that jobs name: whether it can run, whether arguments fit, and its thread."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job


class Function:
    """A function, sync or async.

    Args:
        name: by which jobs name it.
        call: what is called with a job's arguments.

    Raises:
        ConfigurationError: it cannot be run as a job.
    """

    def __init__(self, name: str, call: Callable[..., object]) -> None:
        plain = _plain(call)
        is_run = callable(plain) and not inspect.isclass(plain)
        if not is_run or inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
            raise ConfigurationError(
                f"{call!r} cannot be run to an end; give a `def` or an `async def` without `yield`", job=name
            )
        called = plain if inspect.isroutine(plain) else type(plain).__call__
        self.name = name
        self.call = call
        self.is_async = inspect.iscoroutinefunction(called)

    def check(self, job: Job) -> None:
        """Refuse arguments that it does not take.

        Raises:
            ConfigurationError: says which.
        """
        try:
            signature = inspect.signature(self.call)
        except (TypeError, ValueError):  # written in C, without a signature
            return
        try:
            signature.bind(*job.args, **job.kwargs)
        except TypeError as error:
            raise ConfigurationError(
                f"{error}; the function takes {signature}", job=job.name, argument="args and kwargs"
            ) from None

    def in_thread(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Future[object]:
        """Call it in a thread of its own that knows the current slot.

        A daemon thread, since nobody can end one: it must not hold up the exit of the process.
        """
        ended: Future[object] = Future()
        ended.set_running_or_notify_cancel()
        context = contextvars.copy_context()

        def main() -> None:
            try:
                result = context.run(self.call, *args, **kwargs)
            except StopIteration as error:  # no future takes one
                ended.set_exception(RuntimeError(f"the function raised {error!r}"))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the task that waits takes it
                ended.set_exception(error)
            else:
                ended.set_result(result)

        Thread(target=main, name=f"slotqueue {self.name}", daemon=True).start()
        return ended


def _plain(call: Callable[..., object]) -> Callable[..., object]:
    while isinstance(call, partial):
        call = call.func
    return call
