"""The coordinating Redis: the verbs of the protocol as Lua scripts, and two short runners for them."""

from slotqueue.store.commands import Commands
from slotqueue.store.redis import AsyncStore, BlockingStore

__all__ = ["AsyncStore", "BlockingStore", "Commands"]
