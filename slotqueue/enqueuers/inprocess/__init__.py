"""Functions of this process: the replica that won a slot is its guarded worker too. Needs no worker system."""

from slotqueue.enqueuers.inprocess.enqueuer import InProcessEnqueuer

__all__ = ["InProcessEnqueuer"]
