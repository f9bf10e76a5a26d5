"""`SLOTQUEUE_DISABLED=1`: nothing ticks in this process, for test suites that start whole applications."""

from __future__ import annotations

import os

VARIABLE = "SLOTQUEUE_DISABLED"
_NO = frozenset({"", "0", "no", "false", "off"})


def is_disabled() -> bool:
    """Whether the environment says that nothing shall tick here."""
    return os.environ.get(VARIABLE, "").strip().lower() not in _NO
