"""Celery: messages under the slot's key as task id, and workers whose tasks the guard wraps."""

from slotqueue.errors import MissingExtra

try:
    import celery  # noqa: F401 - so that a missing extra is one clear line
except ImportError as error:
    raise MissingExtra("celery is not installed; install it with: pip install 'slotqueue[celery]'") from error

from slotqueue.enqueuers.celery.enqueuer import CeleryEnqueuer
from slotqueue.enqueuers.celery.worker import guard_app

__all__ = ["CeleryEnqueuer", "guard_app"]
