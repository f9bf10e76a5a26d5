"""Instants on the command line: in ISO form, or as long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

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
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found


class Ago(Instant):
    """An instant as above, or how long ago: 24h, 90min, 7d, 1h30m."""

    name = "instant or span"
    example = "24h, 90min or 2026-10-25T00:30Z"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it, or fail with what one looks like."""
        if isinstance(value, str) and _SPAN.fullmatch(value.strip()):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
            try:
                return datetime.now(UTC) - timedelta(seconds=seconds)
            except OverflowError:
                self.fail(f"{value!r} is too long ago", param, ctx)
        return super().convert(value, param, ctx)
