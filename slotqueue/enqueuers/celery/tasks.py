"""Puts the guard between Celery's tracer and a task: round `run`, or round a `__call__` of the task's own.

The tracer calls `task.run`, unless a class of the task has a `__call__` of its own: then it calls the task. (In a
worker Celery itself puts one into its base class.) What it calls is what is wrapped, on the very instance, so that no
base class can be in the way: one that derives from `celery.Task`, one that never calls `super()`, a `shared_task`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery.app.trace import task_has_custom
from celery.worker.strategy import default as default_strategy
from kombu.utils import symbol_by_name

from slotqueue.enqueuers.celery.delivery import SlotDelivery, mark_started
from slotqueue.enqueuers.celery.message import SLIP
from slotqueue.enqueuers.celery.replacing import follow_replacements
from slotqueue.enqueuers.celery.request import guarded_request
from slotqueue.enqueuers.celery.retries import note_retries

if TYPE_CHECKING:
    from slotqueue.enqueuers.celery.worker import AppGuard

_MARK = "__slotqueue__"


@dataclass(frozen=True, slots=True)
class GuardedTask:
    """A task with what is needed to guard it.

    Args:
        task: Celery's.
        app_guard: of its application.
        tracks_started: whether Celery is to store the state STARTED. Celery itself would do so before the guard can
            tell a duplicate, and a duplicate must leave the result as it is: so the guard does it.
    """

    task: Any
    app_guard: AppGuard
    tracks_started: bool

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Run a function for a message: a slot under the guard, anything else as it is."""
        request = self.task.request_stack.top
        if request is None or request.called_directly or request.is_eager:
            return function(*args, **kwargs)
        headers = request.headers
        if headers is None or SLIP not in headers or getattr(request, _MARK, False):
            if self.tracks_started:
                mark_started(self.task, request)
            return function(*args, **kwargs)
        setattr(request, _MARK, True)
        return SlotDelivery(self, request).run(function, args, kwargs)


def guard_task(task: Any, app_guard: AppGuard) -> None:  # noqa: ANN401 - Celery is untyped
    """Guard a task, in place; again is harmless.

    Raises:
        AttributeError, TypeError: it does not let itself be wrapped; it is left as it was.
    """
    if _MARK in vars(task):
        return
    if symbol_by_name(task.Strategy) is not default_strategy:
        raise TypeError("its Strategy runs messages in a way of its own")
    guarded = GuardedTask(task, app_guard, bool(task.track_started))
    note_retries(task)
    follow_replacements(task, app_guard.guards)
    if task_has_custom(task, "__call__"):
        _wrap_call(task, guarded)
    else:
        _wrap_run(task, guarded)
    task.Request = guarded_request(symbol_by_name(task.Request), app_guard)
    task.track_started = False
    setattr(task, _MARK, guarded)


def _wrap_run(task: Any, guarded: GuardedTask) -> None:  # noqa: ANN401
    run = task.run

    @functools.wraps(run)
    def guarded_run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return guarded.call(run, args, kwargs)

    task.run = guarded_run
    if task.run is not guarded_run:
        raise TypeError("its `run` is fixed")


def _wrap_call(task: Any, guarded: GuardedTask) -> None:  # noqa: ANN401
    """Give this one task a class of its own, whose `__call__` stands before all others."""
    own: Any = type(task)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, N807
        return guarded.call(functools.partial(own.__call__, self), args, kwargs)

    members = {
        "__call__": __call__,
        "__module__": own.__module__,
        "__doc__": own.__doc__,
        "__qualname__": own.__qualname__,
    }
    task.__class__ = type(own.__name__, (own,), members)
