"""arq: messages under the slot's key as job id, and workers whose functions the guard wraps."""

from slotqueue.errors import MissingExtra

try:
    import arq  # noqa: F401 - so that a missing extra is one clear line
except ImportError as error:
    raise MissingExtra("arq is not installed; install it with: pip install 'slotqueue[arq]'") from error

from slotqueue.enqueuers.arq.enqueuer import ArqEnqueuer
from slotqueue.enqueuers.arq.worker import guard_worker

__all__ = ["ArqEnqueuer", "guard_worker"]
