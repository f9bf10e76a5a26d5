"""Connects an arq `WorkerSettings` class to the guard: wraps its functions, and what it does at start and at stop.

arq reads a settings class by its own `__dict__`, never by inheritance; so does this module, but for `functions`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from arq.constants import default_queue_name
from arq.utils import import_string, to_seconds
from arq.worker import Function

from slotqueue.enqueuers.arq.delivery import deliver
from slotqueue.enqueuers.arq.guarded import Connection, Guarded, Limits, TaskFunction
from slotqueue.enqueuers.arq.places import place_of
from slotqueue.errors import ConfigurationError
from slotqueue.guard import AsyncGuard, worker_process
from slotqueue.protocols import Process

C = TypeVar("C", bound=type)
OpenGuard = Callable[[Process], AsyncGuard]

_MARK = "__slotqueue__"
_ARQ_TIMEOUT = 300
_ARQ_MAX_TRIES = 5


def guard_worker(settings: C, *, namespace: str, open_guard: OpenGuard) -> C:
    """Guard the functions of a settings class, in place; again is harmless, and so is another namespace.

    Args:
        settings: what arq's command line is given. `functions` may be inherited.
        namespace: slots of it are guarded; others that are already guarded stay so.
        open_guard: makes the guard of the worker process, in its event loop, when it starts.

    Raises:
        ConfigurationError: no class, or a class without functions.
    """
    functions = getattr(settings, "functions", None) if inspect.isclass(settings) else None
    if functions is not None and not functions:
        raise ConfigurationError(
            f"{settings.__qualname__}.functions is empty: name the functions that its workers shall run",
            argument="worker settings",
        )
    if functions is None:
        raise ConfigurationError(
            "give a class as arq's command line takes it, with its `functions`", argument="worker settings"
        )
    own = vars(settings).get(_MARK)
    connections: dict[str, _Connection] = dict(own or {})
    if namespace not in connections:
        connections[namespace] = _Connection(open_guard, settings)
    setattr(settings, _MARK, connections)
    guarded = [_guard(each, settings, connections) for each in functions]
    setattr(settings, "functions", guarded)  # noqa: B010 - mypy knows nothing of the class
    for connection in connections.values():
        connection.functions = guarded
    if own is None or namespace not in own:
        _connect(settings, connections[namespace])
    return settings


def function_of(settings: type, name: str) -> TaskFunction | None:
    """Find a function of a guarded settings class by its name in arq, without the guard."""
    guarded = {_name_of(entry): _guarded_in(entry) for entry in vars(settings).get("functions", ())}
    found = guarded.get(name)
    return found.function if found is not None else None


class _Connection:
    """Implements `Connection`: opened when the worker starts, at the latest when it meets its first slot."""

    def __init__(self, open_guard: OpenGuard, settings: type) -> None:
        self.functions: Sequence[object] = ()
        self._open_guard = open_guard
        self._settings = settings
        self._guard: AsyncGuard | None = None
        self._main: asyncio.Task[Any] | None = None

    @property
    def guard(self) -> AsyncGuard:
        if self._guard is None:
            tasks = [f"arq:{_name_of(each)}" for each in self.functions]
            self._guard = self._open_guard(worker_process(tasks, worker="arq", **self._about()))
            self._guard.start()
        return self._guard

    @property
    def is_stopping(self) -> bool | None:
        """Whether arq has cancelled its main task: with the jobs when it stops, not when it aborts a job."""
        return None if self._main is None else self._main.done() or self._main.cancelling() > 0

    def _about(self) -> dict[str, str]:
        """What `check` compares with where the jobs are sent; no password."""
        facts = vars(self._settings)
        redis = facts.get("redis_pool") or facts.get("redis_settings")
        queue = facts.get("queue_name") or default_queue_name
        return {"settings": self._settings.__qualname__, "queue": queue, "redis": place_of(redis)}

    async def start(self) -> None:
        """Open the guard; called in arq's main task."""
        for guarded in map(_guarded_in, self.functions):
            if guarded is not None and isinstance(guarded.function, _Lazy):
                _ = guarded.function.function
        self._main = asyncio.current_task()
        _ = self.guard

    async def stop(self) -> None:
        """Say that the worker leaves; the ends of all runs are written by now."""
        guard, self._guard, self._main = self._guard, None, None
        if guard is not None:
            await guard.stop()


def _connect(settings: type, connection: _Connection) -> None:
    theirs_at_start = vars(settings).get("on_startup")
    theirs_at_stop = vars(settings).get("on_shutdown")

    async def on_startup(ctx: dict[Any, Any]) -> None:
        await connection.start()
        if theirs_at_start is not None:
            await theirs_at_start(ctx)

    async def on_shutdown(ctx: dict[Any, Any]) -> None:
        try:
            if theirs_at_stop is not None:
                await theirs_at_stop(ctx)
        finally:
            await connection.stop()

    setattr(settings, "on_startup", on_startup)  # noqa: B010 - as above
    setattr(settings, "on_shutdown", on_shutdown)  # noqa: B010


def _guard(entry: object, settings: type, connections: Mapping[str, Connection]) -> object:
    """Wrap one entry of `functions`: a coroutine function, the text to import it by, or what `arq.func` made of it."""
    if isinstance(entry, str):
        entry = Function(entry, cast("Any", _Lazy(entry)), None, None, None, None)
    if isinstance(entry, Function):
        wrapped = _wrap(entry.coroutine, _limits(settings, entry), settings, connections)
        return replace(entry, coroutine=wrapped)
    if inspect.iscoroutinefunction(entry):
        return _wrap(entry, _limits(settings, None), settings, connections)
    return entry  # nothing that arq takes: arq itself says so


def _wrap(
    function: TaskFunction, limits: Limits, settings: type, connections: Mapping[str, Connection]
) -> TaskFunction:
    """Wrap a coroutine function once; one that an inherited list or another class has wrapped is unwrapped first."""
    earlier: Guarded | None = getattr(function, _MARK, None)
    if earlier is not None:
        function, connections = earlier.function, {**earlier.connections, **connections}
    facts = vars(settings)
    guarded = Guarded(
        function, facts.get("queue_name", default_queue_name), facts.get("job_deserializer"), limits, connections
    )

    @functools.wraps(function)
    async def run(ctx: object, *args: object, **kwargs: object) -> object:
        return await deliver(guarded, ctx, args, kwargs)

    setattr(run, _MARK, guarded)
    return run


def _limits(settings: type, function: Function | None) -> Limits:
    facts = vars(settings)
    timeout = function.timeout_s if function is not None else None
    max_tries = function.max_tries if function is not None else None
    return Limits(
        timeout=to_seconds(facts.get("job_timeout", _ARQ_TIMEOUT)) if timeout is None else timeout,
        max_tries=facts.get("max_tries", _ARQ_MAX_TRIES) if max_tries is None else max_tries,
        is_retrying=facts.get("retry_jobs", True),
    )


def _name_of(entry: object) -> str:
    return entry.name if isinstance(entry, Function) else str(getattr(entry, "__qualname__", entry))


def _guarded_in(entry: object) -> Guarded | None:
    found: Guarded | None = getattr(entry.coroutine if isinstance(entry, Function) else entry, _MARK, None)
    return found


class _Lazy:
    """A function given by the text to import it by: imported when the worker starts, as arq does."""

    def __init__(self, path: str) -> None:
        self.path = path

    async def __call__(self, ctx: object, *args: object, **kwargs: object) -> object:
        return await self.function(ctx, *args, **kwargs)

    @functools.cached_property
    def function(self) -> TaskFunction:
        found: TaskFunction = import_string(self.path)
        return found
