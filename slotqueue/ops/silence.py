"""When a process counts as silent: it was killed, it hangs, or it does not reach Redis. One notion for all who ask."""

from __future__ import annotations

SILENT_MS = 60_000
"""A replica gives a sign of life every 10 s, from its tick; a guarded worker reports every 20 s."""
JOB_UNSAID_MS = 6 * 60_000
"""A replica says every five minutes which jobs it knows."""


def is_silent(seen: int, now: int) -> bool:
    """Whether a process that was last seen then, ms, has been silent for a minute."""
    return now - seen > SILENT_MS
