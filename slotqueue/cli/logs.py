"""Logs of a command: one line a fact, to stderr, in UTC."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from slotqueue.cli.failing import printable


class _OneLine(logging.Formatter):
    """Keeps a message on its line, whatever an error text holds. Tracebacks follow on lines of their own."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='milliseconds')}Z"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record))


def log_to_stderr(level: str) -> None:
    """Log slotqueue's facts from `level` on, and warnings of everything else.

    An application that configures logging itself, later, has the last word.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("slotqueue").setLevel(level.upper())
