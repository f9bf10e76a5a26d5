"""Guards the tasks of a Celery application in every worker that imports the module with the `SlotQueue`.

Nothing happens to a task before a worker starts: then all modules are imported and the application is finalized, and
what the tracer is about to call can be wrapped, whatever base class the task has. Worker processes that are forked
later inherit that; their connections are made at their first slot.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from celery import signals

from slotqueue.enqueuers.celery.message import TOKEN, readable_slip_in
from slotqueue.enqueuers.celery.places import place_of, queues_listened_to
from slotqueue.enqueuers.celery.reports import Reports
from slotqueue.enqueuers.celery.tasks import guard_task
from slotqueue.guard import SyncGuard, worker_process
from slotqueue.guard_events import GuardBypassed
from slotqueue.messages import Slip
from slotqueue.policy import Terms
from slotqueue.protocols import Process
from slotqueue.slots import parse_key

OpenGuard = Callable[[Process], SyncGuard]

_MOST_NAMED = 50
"""Tasks that could not be guarded, as the registry names them."""


class Connection:
    """A worker's connection to one namespace: a guard in each of its processes, opened at its first slot.

    Args:
        open_guard: makes the guard of a process, in that process.
        name_process: says who that process is.
    """

    def __init__(self, open_guard: OpenGuard, name_process: Callable[[], Process]) -> None:
        self._open_guard = open_guard
        self._name_process = name_process
        self._found: tuple[int, SyncGuard] | None = None
        self._lock = (os.getpid(), threading.Lock())

    def guard(self) -> SyncGuard:
        """The guard of this process, be it the worker's own or one of its pool.

        A fork may happen while another thread holds the lock: a child takes a new one.
        """
        if self._lock[0] != os.getpid():
            self._lock = (os.getpid(), threading.Lock())
        with self._lock[1]:
            if self._found is None or self._found[0] != os.getpid():
                self._found = (os.getpid(), self._open_guard(self._name_process()))
            return self._found[1]

    def stop(self) -> None:
        """Say that this process leaves, where it was there."""
        found, self._found = self._found, None
        if found is not None and found[0] == os.getpid():
            found[1].stop()


class AppGuard:
    """The guard of one Celery application in this process and in those forked from it."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - Celery is untyped
        self.app = app
        self.connections: dict[str, Connection] = {}
        self.reports = Reports()
        self.guarded: tuple[str, ...] = ()
        self.unguarded: dict[str, str] = {}
        """Task name -> why it could not be guarded."""
        signals.worker_init.connect(self._on_init, weak=False)
        signals.worker_ready.connect(self._on_ready, weak=False)
        signals.worker_shutdown.connect(self._on_shutdown, weak=False)
        signals.worker_process_shutdown.connect(self._on_process_shutdown, weak=False)
        signals.task_revoked.connect(self._on_revoked, weak=False)
        signals.task_unknown.connect(self._on_unknown, weak=False)

    def process(self, kind: str) -> Process:
        """Name this process, and say what `check` compares with where jobs are sent.

        Args:
            kind: of the enqueuer.
        """
        about: dict[str, object] = {
            "queues": queues_listened_to(self.app),
            "broker": place_of(self.app.connection_for_read()),
        }
        if self.unguarded:
            about["unguarded"] = dict(list(self.unguarded.items())[:_MOST_NAMED])
        return worker_process([f"{kind}:{task}" for task in self.guarded], worker=kind, **about)

    def connection_of(self, slip: Slip) -> Connection | None:
        """The connection to a slot's namespace; None where this worker does not know it."""
        return self.connections.get(parse_key(slip.key).namespace)

    def guards(self, task: str) -> bool:
        """Whether a worker of this application guards the task of this name."""
        return task in self.guarded

    def guard_tasks(self) -> None:
        """Guard every task of the application; said twice, it does nothing more."""
        guarded = []
        for name, task in self.app.tasks.items():
            try:
                guard_task(task, self)
            except (AttributeError, TypeError) as error:
                self.unguarded[name] = f"{type(task).__qualname__} cannot be wrapped: {error}"
            else:
                guarded.append(name)
        self.guarded = tuple(guarded)

    def fail(self, slip: Slip, token: str, error: str) -> None:
        """Say, from the parent process, that a run ended whose process can say nothing any more."""
        connection = self.connection_of(slip)
        if connection is not None:
            guard, patience = connection.guard(), _lease_seconds(slip)
            self.reports.say(lambda: guard.fail_unheard(slip, token, error, patience))

    def reject(self, slip: Slip, why: str) -> None:
        """Say, from the parent process, that a message was dropped unrun."""
        connection = self.connection_of(slip)
        if connection is not None:
            guard, patience = connection.guard(), _lease_seconds(slip)
            self.reports.say(lambda: guard.reject(slip, why, patience))

    def _on_init(self, sender: Any = None, **_: object) -> None:  # noqa: ANN401
        if sender is not None and sender.app is self.app:
            self.guard_tasks()

    def _on_ready(self, sender: Any = None, **_: object) -> None:  # noqa: ANN401
        if sender is None or sender.app is not self.app:
            return
        for connection in self.connections.values():
            guard = connection.guard()
            for name, why in self.unguarded.items():
                guard.emit(GuardBypassed(name, why))
            guard.start()

    def _on_shutdown(self, sender: Any = None, **_: object) -> None:  # noqa: ANN401
        if sender is not None and sender.app is self.app:
            self.reports.finish()
            self._stop()

    def _on_process_shutdown(self, **_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        for connection in self.connections.values():
            connection.stop()

    def _on_revoked(
        self,
        sender: Any = None,  # noqa: ANN401
        request: Any = None,  # noqa: ANN401
        *,
        terminated: bool = False,
        expired: bool = False,
        **_: object,
    ) -> None:
        slip = readable_slip_in(request.headers) if request is not None and sender.app is self.app else None
        if slip is None:
            return
        if terminated:
            self.fail(slip, str(request.headers.get(TOKEN)), "terminated in Celery")
        else:
            self.reject(slip, "expired at the Celery worker" if expired else "revoked in Celery")

    def _on_unknown(
        self,
        sender: Any = None,  # noqa: ANN401
        name: str = "",
        message: Any = None,  # noqa: ANN401
        **_: object,
    ) -> None:
        slip = readable_slip_in(message.headers) if message is not None and sender.app is self.app else None
        if slip is not None:
            self.reject(slip, f"no Celery worker here knows the task {name!r}")


_apps: WeakKeyDictionary[Any, AppGuard] = WeakKeyDictionary()


def guard_app(app: Any, *, namespace: str, open_guard: OpenGuard, kind: str = "celery") -> AppGuard:  # noqa: ANN401
    """Guard the slots of a namespace in every worker of a Celery application; again is harmless.

    Args:
        app: the application; it may be finalized already.
        namespace: slots of it are guarded, also beside those of others.
        open_guard: makes the guard of a worker process, in that process.
        kind: of the enqueuer.
    """
    app = getattr(app, "_get_current_object", lambda: app)()
    guard = _apps.get(app)
    if guard is None:
        guard = _apps[app] = AppGuard(app)
    guard.connections.setdefault(namespace, Connection(open_guard, functools.partial(guard.process, kind)))
    return guard


def _lease_seconds(slip: Slip) -> float:
    """How long it is worth while to say something of a slot's run."""
    return Terms.parse(slip.terms).lease / 1000
