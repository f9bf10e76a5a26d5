"""Instants on the command line: in ISO form, or as long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""What is asked about lies between, and so does what is computed from it: the longest retention is ten years."""

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?(?:s|min|m|h|d|w)\s*)+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(s|min|m|h|d|w)", re.ASCII)


class Instant(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """An aware instant in ISO form; without a zone it is UTC."""

    name = "instant"
    example = "2026-10-25T00:30Z"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it, or fail with what one looks like."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no instant; one looks like {self.example}", param, ctx)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        if not _EARLIEST <= found < _LATEST:
            self.fail(f"{value!r} is too far away; between {_EARLIEST:%Y} and {_LATEST:%Y} is right", param, ctx)
        return found


class Ago(Instant):
    """An instant as above, or how long ago: 24h, 90min, 7d, 1h30m."""

    name = "instant or span"
    example = "24h, 90min or 2026-10-25T00:30Z"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it, or fail with what one looks like."""
        try:
            if isinstance(value, str) and (span := _span(value)) is not None:
                value = (datetime.now(UTC) - span).isoformat()
        except OverflowError:
            self.fail(f"{value!r} is too long ago", param, ctx)
        return super().convert(value, param, ctx)


class Ahead(Instant):
    """An instant as above, or how far ahead: 2h, 30min, 7d, 1h30m."""

    name = "instant or span"
    example = "2h, 30min or 2026-10-25T00:30Z"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it, or fail with what one looks like."""
        try:
            if isinstance(value, str) and (span := _span(value)) is not None:
                value = (datetime.now(UTC) + span).isoformat()
        except OverflowError:
            self.fail(f"{value!r} is too far ahead", param, ctx)
        return super().convert(value, param, ctx)


def _span(text: str) -> timedelta | None:
    """Read how long; None for a text that is no span.

    Raises:
        OverflowError: it is too long.
    """
    if not _SPAN.fullmatch(text.strip()):
        return None
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
