"""What was measured, in one file: the table and the plots are made of it and of nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.peers.peer import ROOT

RESULTS = ROOT / "docs" / "benchmarks" / "results.json"


@dataclass(slots=True)
class Subject:
    """A peer as it was measured; `figures`: scenario -> figure -> a value for each repeat."""

    name: str
    versions: dict[str, str]
    setup: str
    documentation: str
    remarks: str
    figures: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, scenario: str, found: dict[str, float]) -> None:
        """Take in what one repeat found."""
        figures = self.figures.setdefault(scenario, {})
        for name, value in found.items():
            figures.setdefault(name, []).append(round(value, 6))


@dataclass(slots=True)
class Results:
    """One run of all."""

    machine: str = ""
    date: str = ""
    subjects: dict[str, Subject] = field(default_factory=dict)

    def save(self, path: Path = RESULTS) -> None:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path = RESULTS) -> Results:
        """Read the file; empty where there is none."""
        if not path.exists():
            return cls()
        read = json.loads(path.read_text(encoding="utf-8"))
        read["subjects"] = {name: Subject(**each) for name, each in read["subjects"].items()}
        return cls(**read)
