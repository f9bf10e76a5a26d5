"""The `SlotQueue` that a Celery application's own settings and beat schedule describe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from celery.beat import Scheduler

from slotqueue.app import SlotQueue
from slotqueue.beat.entries import Entry, entry_of
from slotqueue.beat.lazy import LazyEnqueuer
from slotqueue.beat.settings import Settings, settings_of
from slotqueue.enqueuers.celery import CeleryEnqueuer


def read_queue(app: Any) -> SlotQueue:  # noqa: ANN401 - Celery is untyped
    """Assemble a `SlotQueue` from what a Celery application says: its settings and its beat schedule.

    Raises:
        ConfigurationError: a setting or an entry that cannot work; names it and what would be right.
    """
    settings = settings_of(app)
    reader = Scheduler(app, lazy=True)
    read_schedule(reader)
    return queue_of(app, settings, [entry_of(said, app, settings.defaults) for said in reader.schedule.values()])


def load_queue(app: Any) -> SlotQueue:  # noqa: ANN401 - as above
    """Import what a Celery application names, as its beat does, and read its `SlotQueue`.

    Raises:
        ConfigurationError: see `read_queue`.
    """
    app.loader.init_worker()
    app.finalize()
    return read_queue(app)


def read_schedule(scheduler: Any) -> None:  # noqa: ANN401 - as above
    """Fill a scheduler of Celery's with the beat schedule and with what Celery itself wants done."""
    scheduler.merge_inplace(scheduler.app.conf.beat_schedule)
    scheduler.install_default_entries(scheduler.schedule)


def guard(app: Any) -> None:  # noqa: ANN401 - as above
    """Guard the workers of a Celery application that has no `SlotQueue` of its own, by its settings.

    To be said in the module of the application, before or after its configuration: it is read when the application is
    finalized.
    """
    if app.finalized:
        _guard(app)
    else:
        app.on_after_finalize.connect(_guard, weak=False)


def _guard(sender: Any, **_: Any) -> None:  # noqa: ANN401 - as above
    settings = settings_of(sender)
    SlotQueue(settings.url, enqueuer=CeleryEnqueuer(sender), namespace=settings.namespace, defaults=settings.defaults)


def queue_of(app: Any, settings: Settings, entries: Iterable[Entry]) -> SlotQueue:  # noqa: ANN401 - Celery is untyped
    """Assemble a `SlotQueue` from a Celery application.

    Raises:
        ConfigurationError: an entry that cannot work; names it and what would be right.
    """
    slots = SlotQueue(
        settings.url,
        enqueuer=LazyEnqueuer(CeleryEnqueuer(app)),
        namespace=settings.namespace,
        defaults=settings.defaults,
    )
    for entry in entries:
        add_entry(slots, entry)
    return slots


def add_entry(slots: SlotQueue, entry: Entry) -> None:
    """Add an entry as a job.

    Raises:
        ConfigurationError: names the entry, the argument and what would be right.
    """
    slots.add(
        entry.name,
        entry.schedule,
        task=entry.task,
        args=entry.args,
        kwargs=entry.kwargs,
        options=entry.options,
        policy=entry.policy,
    )
