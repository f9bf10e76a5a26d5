"""The ledger: one file to which every process appends what it did, whatever happens to the network and to Redis.

A line is written in one call to a file opened for appending, so lines of several processes never mix, and what was
written before a SIGKILL stays. Times are of the monotonic clock, which all processes of a machine share and no wrong
wall clock touches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Self


@dataclass(frozen=True, slots=True)
class Entry:
    """What one process did.

    Args:
        what: "claimed" a slot; "leased" it up to `until`; "began" and "ended" the function; "done": the store has
            taken the finish; "postponed": handed back cleanly; "failed": the store has taken the failure.
        key: of the slot.
        by: the replica or worker.
        at: monotonic seconds.
        pid: of the process.
        fence: of the run, 0 for none.
        attempt: of the run, 0 for none.
        until: where leased: this process may be sure of its lease until then.
    """

    what: str
    key: str
    by: str
    at: float
    pid: int = 0
    fence: int = 0
    attempt: int = 0
    until: float = 0.0

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line."""
        return cls(**json.loads(line))


class Ledger:
    """Appends to the file, from any thread and from forked children."""

    def __init__(self, path: Path | str, by: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._by = by

    def write(self, what: str, key: str, *, fence: int = 0, attempt: int = 0, until: float = 0.0) -> None:
        """Append an entry."""
        entry = Entry(what, key, self._by, monotonic(), os.getpid(), fence, attempt, until)
        os.write(self._file, json.dumps(asdict(entry)).encode() + b"\n")


def read(path: Path) -> list[Entry]:
    """All entries, by time."""
    lines: Iterable[str] = path.read_text().splitlines() if path.exists() else ()
    return sorted((Entry.parse(line) for line in lines), key=lambda entry: entry.at)
