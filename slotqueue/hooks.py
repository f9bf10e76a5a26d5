"""What an application's `on_event` hooks are called by: sync or async, any number, none of which can do harm.

A sync hook is called in the thread that emits. What an async one returns runs as a task of the emitting event loop; in
a thread without one, in a loop of its own thread. A hook that raises is logged, and the next one is called all the
same; one that does not keep up loses events, which is logged too.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

logger = logging.getLogger("slotqueue")

_MOST_PENDING = 1000

Hook = Callable[[Any], Awaitable[object] | object]
"""Called with each event; `def` or `async def`."""


class Hooks:
    """Calls hooks.

    Args:
        hooks: the first ones.
    """

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self._hooks: tuple[Hook, ...] = tuple(hooks)
        self._pending: set[asyncio.Future[None]] = set()
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._has_said_full = False

    def __len__(self) -> int:
        return len(self._hooks)

    def add(self, hook: Hook) -> None:
        """Call one more from now on."""
        self._hooks = (*self._hooks, hook)

    def __call__(self, event: object) -> None:
        """Call all of them with an event."""
        for hook in self._hooks:
            try:
                answer = hook(event)
                if inspect.isawaitable(answer):
                    self._run(answer, type(event).__name__)
            except Exception:
                logger.exception("on_event raised for %s", type(event).__name__)

    async def drain(self, seconds: float) -> None:
        """Wait for what async hooks have still to do in this loop, so long at most."""
        loop = asyncio.get_running_loop()
        mine = [each for each in self._pending if each.get_loop() is loop]
        if mine:
            await asyncio.wait(mine, timeout=seconds)

    def _run(self, answer: Awaitable[object], name: str) -> None:
        if self._pid != os.getpid():  # neither tasks nor threads survive a fork
            self._pid, self._own_loop, self._pending = os.getpid(), None, set()
        if len(self._pending) >= _MOST_PENDING:
            if not self._has_said_full:
                self._has_said_full = True
                logger.warning("an async on_event hook does not keep up: it loses events from here on")
            if inspect.iscoroutine(answer):
                answer.close()
            return
        self._has_said_full = False
        try:
            task = asyncio.get_running_loop().create_task(_finished(answer, name))
        except RuntimeError:
            self._apart().call_soon_threadsafe(self._begin_apart, answer, name)
        else:
            self._keep(task)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    def _begin_apart(self, answer: Awaitable[object], name: str) -> None:
        self._keep(asyncio.get_running_loop().create_task(_finished(answer, name)))

    def _apart(self) -> asyncio.AbstractEventLoop:
        """The loop for events that are emitted where none runs: by a heartbeat, or in a Celery worker."""
        if self._own_loop is None:
            self._own_loop = asyncio.new_event_loop()
            threading.Thread(target=self._own_loop.run_forever, name="slotqueue-hooks", daemon=True).start()
        return self._own_loop


async def _finished(answer: Awaitable[object], name: str) -> None:
    try:
        await answer
    except Exception:
        logger.exception("on_event raised for %s", name)
