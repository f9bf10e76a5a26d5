"""The Lua sources, one file a verb. Those about slots get `record.lua` put before them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_ABOUT_PROCESSES = frozenset({"register", "enlist", "leave", "miss", "overdue", "open_keys", "waiting", "own"})


@cache
def source_of(verb: str) -> str:
    """The full text of a verb's script."""
    own = (files("slotqueue.store") / "lua" / f"{verb}.lua").read_text(encoding="utf-8")
    if verb in _ABOUT_PROCESSES:
        return own
    shared = (files("slotqueue.store") / "lua" / "record.lua").read_text(encoding="utf-8")
    return f"{shared}\n{own}"
