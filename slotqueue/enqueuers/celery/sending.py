"""`send_task` of a Celery application, without what only those need who wait for a result or send one message.

Celery's Redis backend subscribes to the result of every message and unsubscribes when it is forgotten: two round trips
beside the one that sends. `ignore_result` would spare them, but it overrides the task's own setting. And kombu copies
and binds a message's queue, only to find that this connection has declared it before: a fifth of what a message costs.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from celery import Celery
from kombu import Queue


def sending(app: Any, channel: Any) -> Any:  # noqa: ANN401 - Celery is untyped
    """What sends tasks of an application by name; the application's own `send_task` where it has one.

    Args:
        app: the Celery application.
        channel: kombu's, over which everything goes that is sent.
    """
    if getattr(app.send_task, "__func__", app) is not Celery.send_task:  # its own way of sending may need all of it
        return app.send_task
    return partial(Celery.send_task, _Unwatched(app), result_cls=_Unasked, router=_Router(app, channel))


class _Unwatched:
    """A Celery application as its `send_task` sees it, but for the result backend."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401
        self._app = app
        self.conf = _Settings(app)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._app, name)

    @property
    def backend(self) -> Self:
        return self

    def on_task_call(self, producer: Any, task_id: str) -> None:  # noqa: ANN401
        """Expect nothing."""


class _Settings:
    """The application's settings; each is looked up once."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401
        self._app = app

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        value = getattr(self._app.conf, name)
        setattr(self, name, value)
        return value


class _Unasked:
    """In place of an `AsyncResult`."""

    def __init__(self, task_id: str) -> None:
        self.id = task_id


class _Router:
    """The application's router; its queues are bound to a channel, once each."""

    def __init__(self, app: Any, channel: Any) -> None:  # noqa: ANN401
        self._app = app
        self._channel = channel
        self._bound: dict[str, tuple[Queue, Queue]] = {}

    def route(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        options = self._app.amqp.router.route(*args, **kwargs)
        queue = options.get("queue")
        if type(queue) is Queue and queue.name and not queue.is_bound:
            known, bound = self._bound.get(queue.name, (None, queue))
            if known is not queue:
                bound = queue.bind(self._channel)
                self._bound[queue.name] = queue, bound
            options["queue"] = bound
        return options
