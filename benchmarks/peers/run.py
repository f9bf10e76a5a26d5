"""Measure slotqueue and its peers side by side, and write docs/benchmarks: results, tables, plots."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NoReturn

from benchmarks.peers.environments import NotInstalled, environment, versions
from benchmarks.peers.peer import ROOT, Peer, Terms
from benchmarks.peers.results import Results, Subject
from benchmarks.peers.roster import NAMES, roster
from benchmarks.peers.scenarios import LONG_S, SCENARIOS, chosen
from benchmarks.peers.servers import version as server_version
from benchmarks.peers.table import insert
from benchmarks.report import hardware

_NAME = re.compile(r"[A-Za-z][\w.-]*")


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for, and write the results. What is not measured now keeps its figures."""
    asked = _asked(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    results = Results.load()
    try:
        if not asked.plot_only:
            _measure(asked, results)
    except KeyboardInterrupt:
        insert(results)
        _say("interrupted; what was done is in the results and in the tables")
        return 130
    insert(results)
    _draw()
    return 0


def _interrupt(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - what a handler is given
    """Once: nothing may stop the replicas from being ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument("--only", type=_words, default=[], metavar="NAME,...", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--scenario", type=_words, default=[], metavar="NAME,...", help=f"beginnings of {'; '.join(SCENARIOS)}"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="how often each (3)")
    parser.add_argument("--quick", action="store_true", help="each once, and nothing of growth")
    parser.add_argument("--far", action="store_true", help="growth to 50 replicas and 100,000 jobs for the peers too")
    parser.add_argument("--patience", type=float, default=1, metavar="N", help="wait N times as long for starts (1)")
    parser.add_argument("--plot-only", action="store_true", help="make tables and plots of the results that are there")
    asked = parser.parse_args(arguments)
    if asked.quick:
        asked.repeat = 1
    try:
        asked.peers = roster(asked.only)
        asked.scenarios = [each for each in chosen(asked.scenario) if not (asked.quick and each.once)]
    except ValueError as error:
        parser.error(str(error))
    return asked


def _measure(asked: argparse.Namespace, results: Results) -> None:
    results.machine = f"{hardware()}, Valkey {server_version()}; load before: {os.getloadavg()[0]:.1f}"
    results.date = datetime.now(UTC).strftime("%Y-%m-%d")
    began = time.monotonic()
    for name, peer in asked.peers.items():
        for subject in _measured(name, peer, asked, results.subjects.get(name)):
            results.subjects[name] = subject
            results.subjects = {each: results.subjects[each] for each in NAMES if each in results.subjects}
            results.save()
    _say(f"{(time.monotonic() - began) / 60:.0f} minutes")


def _measured(name: str, peer: Peer, asked: argparse.Namespace, before: Subject | None) -> Iterator[Subject]:
    """The peer's figures, after each scenario."""
    subject = Subject(peer.name, {}, peer.setup, peer.documentation, peer.remarks)
    try:
        _say(f"{peer.name}: install")
        folder = environment(name, peer.requirements)
        subject.versions = _named(versions(folder), peer)
    except NotInstalled as error:
        subject.failures["install"] = str(error)
        yield subject
        return
    names = {each.name for each in asked.scenarios}
    if before:
        subject.figures = {key: value for key, value in before.figures.items() if key not in names}
        subject.failures = {key: value for key, value in before.failures.items() if key not in {*names, "install"}}
    terms = Terms(asked.patience, far=asked.far or name == "slotqueue")
    for scenario in asked.scenarios:
        for turn in range(1 if scenario.once else asked.repeat):
            began = time.monotonic()
            try:
                found = scenario.measure(peer, folder, terms)
            except Exception as error:  # noqa: BLE001 - whatever one peer does, the others are measured
                subject.failures[scenario.name] = str(error) or repr(error)
                _say(f"{peer.name}: {scenario.name}: {error}")
                break
            took = time.monotonic() - began
            subject.add(scenario.name, found)
            figures = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
            _say(f"{peer.name}: {scenario.name}, {turn + 1}: {figures} ({took:.0f} s)")
            if took > LONG_S * asked.patience + 60 * peer.whole_minutes:
                break
        yield subject


def _named(found: dict[str, str], peer: Peer) -> dict[str, str]:
    """The versions of what the peer asks for by name."""
    matches = (_NAME.match(each) for each in (peer.package, *peer.requirements))
    names = dict.fromkeys(match[0].lower().replace("_", "-") for match in matches if match)
    return {name: found[name] for name in names if name in found}


def _draw() -> None:
    programs = environment("plots", ("matplotlib",))
    subprocess.run([programs / "python", "-m", "benchmarks.peers.plots"], cwd=ROOT, check=True)


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
