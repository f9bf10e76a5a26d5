"""`celery beat` that may run as often as you like: `celery -A proj beat -S slotqueue.beat.SlotScheduler`.

One claim per slot, so that N beats send one message a slot; no leader, no lock, nothing on disk. It reads
`beat_schedule` and `add_periodic_task` as they are.

`slotqueue.beat.guard(app)` guards the workers of an application that has no `SlotQueue` object.
"""

from slotqueue.errors import MissingExtra

try:
    import celery  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise MissingExtra('slotqueue.beat needs Celery: pip install "slotqueue[celery]"') from error

from slotqueue.beat.application import guard
from slotqueue.beat.scheduler import SlotScheduler

__all__ = ["SlotScheduler", "guard"]
