"""Quicker packing of long commands for asyncio clients of redis-py.

redis-py packs commands for its asyncio connections in Python, which is a third of the time that a batch of a thousand
slots costs. Where hiredis is installed (arq asks for it), it does this in C, as it does already for blocking ones.
"""

from __future__ import annotations

from typing import Any

try:
    import hiredis
except ImportError:  # then redis-py's own packing serves
    hiredis = None  # type: ignore[assignment]


def pack_in_c(pool: Any) -> None:  # noqa: ANN401 - redis-py's pool, which this module does not import
    """Let new connections of an asyncio connection pool pack their commands in C, where that is to be had."""
    kind: Any = pool.connection_class
    if hiredis is None or "pack_command" in vars(kind):
        return

    def pack(self: Any, *args: Any) -> list[bytes]:  # noqa: ANN401 - as redis-py's own
        words = tuple(args[0].split()) if isinstance(args[0], str) else (args[0],)  # "SCRIPT LOAD" is two
        try:
            return [hiredis.pack_command((*words, *args[1:]))]
        except TypeError:  # a memoryview, say: what only redis-py's own encoder takes
            plain: list[bytes] = kind.pack_command(self, *args)
            return plain

    pool.connection_class = type(kind.__name__, (kind,), {"pack_command": pack})
