"""The Lua sources, one file a verb.

Those about slots get `record.lua` put before them, those that let a slot go out what they share besides.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_ABOUT_PROCESSES = frozenset(
    {"register", "enlist", "vouch", "leave", "miss", "overdue", "open_keys", "waiting", "own", "taken"}
)
_ABOUT_STORED_JOBS = frozenset({"put", "remove", "changes", "restore"})
_READ_ONLY = frozenset({"heads", "listed", "tally", "letters", "told"})
_ABOUT_JOBS = frozenset({"pause", "pauses", "forget"})
_ABOUT_NO_SLOT = _ABOUT_PROCESSES | _ABOUT_STORED_JOBS | _ABOUT_JOBS | _READ_ONLY
_SHARED = {
    "claim": ("record", "overlap"),
    "take_over": ("record", "overlap"),
    "retry": ("record", "overlap", "by_hand"),
    "order": ("record", "overlap", "by_hand"),
}
"""What is put before a verb's own text; before most it is `record` alone."""


@cache
def source_of(verb: str) -> str:
    """The full text of a verb's script."""
    parts = () if verb in _ABOUT_NO_SLOT else _SHARED.get(verb, ("record",))
    return "\n".join(_read(part) for part in (*parts, verb))


def _read(part: str) -> str:
    return (files("slotqueue.store") / "lua" / f"{part}.lua").read_text(encoding="utf-8")
