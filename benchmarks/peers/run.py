"""Measure slotqueue and its peers: `python -m benchmarks peers [--only arq,saq] [--scenario burst] [--repeat 3]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.peers.environments import NotInstalled, environment, versions
from benchmarks.peers.peer import Peer, Terms
from benchmarks.peers.replicas import Stopped
from benchmarks.peers.results import Results, Subject
from benchmarks.peers.roster import NAMES, roster
from benchmarks.peers.scenarios import LONG_S, SCENARIOS, Scenario, chosen
from benchmarks.report import machine


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument("--only", type=_words, default=[], metavar="NAME,...", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--scenario", type=_words, default=[], metavar="NAME,...", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--repeat", type=int, default=3, help="how often (3)")
    parser.add_argument("--patience", type=float, default=1, metavar="N", help="wait N times as long for a start (1)")
    parser.add_argument(
        "--far", action="store_true", help="growth to 50 replicas and 100,000 jobs for each, which takes long"
    )
    asked = parser.parse_args(arguments)
    try:
        peers, scenarios = roster(asked.only), chosen(asked.scenario)
    except ValueError as error:
        parser.error(str(error))
    results = Results.load()
    results.machine, results.date = machine(), datetime.now(UTC).strftime("%Y-%m-%d")
    for name, peer in peers.items():
        results.subjects[name] = _measured(name, peer, scenarios, asked, results.subjects.get(name))
        results.save()
    return 0


def _measured(
    name: str, peer: Peer, scenarios: Sequence[Scenario], asked: argparse.Namespace, before: Subject | None
) -> Subject:
    """The peer's figures; those of scenarios that are not measured now stay as they were."""
    try:
        _say(f"{peer.name}: install")
        folder = environment(name, peer)
        subject = Subject.of(peer, versions(folder))
    except NotInstalled as error:
        return Subject(peer.name, {}, peer.setup, peer.documentation, peer.remarks, failures={"install": str(error)})
    terms = Terms(asked.patience, far=asked.far or name == "slotqueue")
    names = {each.name for each in scenarios}
    if before:
        subject.figures = {key: value for key, value in before.figures.items() if key not in names}
        subject.failures = {key: value for key, value in before.failures.items() if key not in {*names, "install"}}
    for scenario in scenarios:
        times = 1 if scenario.once else asked.repeat
        for turn in range(times):
            began = time.monotonic()
            try:
                found = scenario.measure(peer, folder, terms)
            except (Stopped, OSError) as error:
                subject.failures[scenario.name] = str(error)
                _say(f"{peer.name}: {scenario.name}: {error}")
                break
            took = time.monotonic() - began
            subject.add(scenario.name, found)
            figures = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
            _say(f"{peer.name}: {scenario.name} {turn + 1}/{times}: {figures} ({took:.0f} s)")
            if took > LONG_S:
                break
    return subject


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
