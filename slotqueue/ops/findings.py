"""What `check` finds, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    PROBLEM = "problem"
    """Something will not work."""
    WARNING = "warning"
    """It works, and promises less than it could."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that `check` found.

    Args:
        severity: how bad it is.
        about: "job 'rollup'", "redis", "workers", "application".
        text: what is wrong and what would be right.
    """

    severity: Severity
    about: str
    text: str
