"""A `SlotQueue` that ticks in a thread of its own, for hosts without an event loop: celery beat, Flask, Django.

The thread is a daemon: a host that dies without a word takes it along, and another replica's sweep takes over. It is
never inherited by a fork: a child process has no thread, and none of its parent's connections is used there.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from slotqueue.errors import ConfigurationError
from slotqueue.events import Emit, LoopDied

_STOP_SECONDS = 4.8
"""A `SlotQueue` stops within 4.5 s, also while Redis is unreachable."""
_START_SECONDS = 5.0
_GREEN = (("gevent.monkey", "is_module_patched", "threading"), ("eventlet.patcher", "is_monkey_patched", "thread"))
"""Libraries that replace threads: the module to ask, and how."""


class Ticking(Protocol):
    """What a thread can run: a `SlotQueue`."""

    @property
    def events(self) -> Emit:
        """Takes events."""
        ...

    async def run(self, stopping: asyncio.Event | None = None) -> None:
        """Tick until `stopping` is set."""
        ...


Q = TypeVar("Q", bound=Ticking)


def green_threads() -> str:
    """Which library has put green threads, where no event loop runs, in place of threads; "" where none has."""
    for module, ask, patched in _GREEN:
        if module in sys.modules and getattr(sys.modules[module], ask)(patched):
            return module.partition(".")[0]
    return ""


class BackgroundTicker(Generic[Q]):
    """Runs a `SlotQueue` in a thread.

    Args:
        slots: what ticks; from the start on it is touched in the thread only, see `call`.
    """

    def __init__(self, slots: Q) -> None:
        self.slots = slots
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._is_running = threading.Event()
        self._error: BaseException | None = None
        self._is_stopping = False

    def start(self) -> None:
        """Start the thread. Redis may be away: the loops keep trying.

        Raises:
            ConfigurationError: it was started before, or there are no threads here, see `green_threads`.
        """
        if library := green_threads():
            raise ConfigurationError(
                f"{library} has replaced threads in this process, and nothing would ever tick; take start_thread() out "
                "and run `slotqueue run MODULE:ATTRIBUTE` as a process of its own"
            )
        if self._thread is not None:
            raise ConfigurationError("this SlotQueue ticks in a thread already")
        self._thread = threading.Thread(target=self._main, name="slotqueue", daemon=True)
        self._thread.start()
        self._is_running.wait(_START_SECONDS)

    def check(self) -> None:
        """See that the thread lives: a ticker never dies silently.

        Raises:
            BaseException: what ended it.
        """
        if self._error is not None:
            raise self._error

    def call(self, change: Callable[[], object]) -> None:
        """Run something in the thread, soon: to add or remove jobs. It must not block or raise."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(change)

    def stop(self) -> bool:
        """Finish the enqueue in hand, leave the registry, close connections; within 5 s. Said again, it does not wait.

        Returns:
            Whether the thread has ended.
        """
        thread = self._thread
        if thread is None:
            return True
        patience, self._is_stopping = 0.0 if self._is_stopping else _STOP_SECONDS, True
        self.call(self._stopping.set)
        thread.join(patience)
        return not thread.is_alive()

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:  # noqa: BLE001 - whatever it was, `check` raises it in the host
            self._error = error
            self.slots.events(LoopDied("the slotqueue thread", f"{type(error).__name__}: {error}"))
        finally:
            self._is_running.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_running.set()
        await self.slots.run(self._stopping)
