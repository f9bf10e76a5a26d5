"""`SlotScheduler`: the scheduler class for `celery beat`. Run as many beats as you like.

Beat asks its scheduler to `tick` and sleeps as long as it is told. Here the work is done by a `SlotQueue` in a thread
beside it; a tick only sees that the thread lives and that the schedule is what it was. Nothing is kept on disk, no
beat leads, and none waits for another's lock.
"""

from __future__ import annotations

import contextlib
from typing import Any

from celery.beat import Scheduler
from celery.utils.log import get_logger

from slotqueue.app import SlotQueue
from slotqueue.background import BackgroundTicker
from slotqueue.beat.application import add_entry, queue_of, read_schedule
from slotqueue.beat.entries import Entry, entry_of, job_name
from slotqueue.beat.settings import settings_of
from slotqueue.errors import ConfigurationError
from slotqueue.store.connections import safe_url

_LOOK_EVERY_SECONDS = 1.0
logger = get_logger("slotqueue")


class SlotScheduler(Scheduler):  # type: ignore[misc]  # Celery is untyped
    """The drop-in: `celery -A proj beat -S slotqueue.beat.SlotScheduler`, or `beat_scheduler` in the configuration.

    Caveats: entries are looked at when beat starts, and where an entry object is replaced, added or removed later; one
    that is changed in place is not noticed.

    Args:
        app: the Celery application; its settings are in `slotqueue.beat.settings`.
        *args, **kwargs: as Celery's `Scheduler`.

    Raises:
        ConfigurationError: a setting or an entry that cannot work; names it and what would be right.
    """

    max_interval = _LOOK_EVERY_SECONDS

    def __init__(self, app: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as Celery's
        self.settings = settings_of(app)
        self._ticker: BackgroundTicker[SlotQueue] | None = None
        self._seen: dict[str, Any] = {}
        super().__init__(app, *args, **kwargs)

    def setup_schedule(self) -> None:
        """Read `beat_schedule` and what `add_periodic_task` put there. Overrides `Scheduler.setup_schedule`."""
        read_schedule(self)
        self._seen = dict(self.schedule)
        entries = [self._read(said) for said in self.schedule.values()]
        self._slots = queue_of(self.app, self.settings, entries)
        if self.app.conf.get("beat_cron_starting_deadline") is not None:
            logger.warning("beat_cron_starting_deadline has no effect here: say lookback or expires, as a policy")

    def tick(self, *_: Any, **__: Any) -> float:  # noqa: ANN401 - as Celery's
        """See that the ticker lives and knows the schedule. Overrides `Scheduler.tick`.

        Returns:
            Seconds until beat should ask again.
        """
        if self._ticker is None:
            self._ticker = BackgroundTicker(self._slots)
            self._ticker.start()
        self._ticker.check()
        if self._seen != self.schedule:  # unchanged entries are the same objects: cheap, whatever their number
            self._follow(self._ticker)
        return float(min(self.max_interval, _LOOK_EVERY_SECONDS))

    def should_sync(self) -> bool:
        """Nothing is on disk. Overrides `Scheduler.should_sync`."""
        return False

    def close(self) -> None:
        """Stop ticking, within 5 s; beat says it twice, from its signal handler first. Overrides `Scheduler.close`."""
        if self._ticker is not None and not self._ticker.stop():
            logger.warning("the ticker did not stop in time; what it had claimed is left to another beat's sweep")
        super().close()

    @property
    def info(self) -> str:
        """What beat's banner says."""
        return f"    . slots -> {safe_url(self.settings.url)}, namespace {self.settings.namespace}"

    def _read(self, said: Any) -> Entry:  # noqa: ANN401 - Celery is untyped
        return entry_of(said, self.app, self.settings.defaults)

    def _follow(self, ticker: BackgroundTicker[SlotQueue]) -> None:
        """Take over what was added, removed or replaced since the last look."""
        before, self._seen = self._seen, dict(self.schedule)
        gone = [name for name, said in before.items() if self._seen.get(name) is not said]
        new = []
        for name, said in self._seen.items():
            if before.get(name) is not said:
                try:
                    new.append(self._read(said))
                except ConfigurationError as error:  # the others shall go on
                    logger.error("%s", error)  # noqa: TRY400 - it says all; the trace is ours

        def change() -> None:
            for name in gone:
                with contextlib.suppress(ConfigurationError):  # an entry that could not be added
                    ticker.slots.remove(job_name(name))
            for entry in new:
                try:
                    add_entry(ticker.slots, entry)
                except ConfigurationError as error:
                    logger.error("%s", error)  # noqa: TRY400 - as above

        ticker.call(change)
