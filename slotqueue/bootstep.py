"""The ticker inside `celery worker`: every worker is a replica too, and no extra process is needed.

One line, in the module of the Celery application::

    slotqueue.bootstep.tick_in_workers(app)          # the beat schedule of the application
    slotqueue.bootstep.tick_in_workers(app, slots)   # the jobs of a SlotQueue

The ticker runs in a thread of the worker's main process. It starts after the pool, so that the children of a prefork
pool have no ticker, and it stops before the pool does. Pools that replace threads (eventlet, gevent) cannot carry it.
"""

from __future__ import annotations

from typing import Any

from slotqueue.app import SlotQueue
from slotqueue.background import BackgroundTicker
from slotqueue.errors import MissingExtra

try:
    from celery import bootsteps
    from celery.utils.log import get_logger
except ImportError as error:
    raise MissingExtra('slotqueue.bootstep needs Celery: pip install "slotqueue[celery]"') from error

from slotqueue.beat.application import read_queue

logger = get_logger("slotqueue")


class TickerStep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery is untyped
    """The step of the worker's blueprint that holds the ticker; `tick_in_workers` adds it."""

    requires = ("celery.worker.components:Pool",)
    slots: SlotQueue | None = None
    """What ticks; None for what the beat schedule of the worker's application says."""

    def __init__(self, worker: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as Celery's
        super().__init__(worker, **kwargs)
        self._ticker: BackgroundTicker[SlotQueue] | None = None

    def include_if(self, worker: Any) -> bool:  # noqa: ANN401 - as Celery's
        """Whether the worker's pool leaves threads what they are. See Celery's `StartStopStep`."""
        is_green = bool(getattr(worker.pool_cls, "is_green", False))
        if is_green:
            logger.error("a worker with an eventlet or gevent pool cannot tick; run celery beat -S %s", _BEAT)
        return not is_green

    def start(self, worker: Any) -> None:  # noqa: ANN401 - as Celery's
        """Start ticking. See Celery's `StartStopStep`.

        Raises:
            ConfigurationError: a setting or an entry that cannot work.
        """
        self._ticker = BackgroundTicker(self.slots or read_queue(worker.app))
        self._ticker.start()

    def stop(self, worker: Any) -> None:  # noqa: ANN401, ARG002 - as Celery's
        """Stop ticking, within 5 s. See Celery's `StartStopStep`."""
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.stop()

    terminate = stop


_BEAT = "slotqueue.beat.SlotScheduler"


def tick_in_workers(app: Any, slots: SlotQueue | None = None) -> None:  # noqa: ANN401 - Celery is untyped
    """Make every worker of a Celery application a replica.

    Args:
        app: the Celery application.
        slots: what ticks. Default: the application's own beat schedule, by its settings (`slotqueue.beat.settings`).
    """
    app.steps["worker"].add(type("TickerStep", (TickerStep,), {"slots": slots}))
