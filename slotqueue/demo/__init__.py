"""`slotqueue demo`: real replicas and workers, some of them killed, and every slot done once all the same."""

from slotqueue.demo.command import demo_command

__all__ = ["demo_command"]
