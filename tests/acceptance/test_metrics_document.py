"""docs/metrics.md lists every metric and every event as they are; the rules and the dashboard ask for no others."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slotqueue import SlotQueue, events, guard_events
from slotqueue.events import Event
from slotqueue.metrics import Metrics
from tests.cli.test_ops import Fake
from tests.store.registering import hourly_job, register
from tests.store.stage import Stage

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
RULES = ROOT / "examples/prometheus"
EVENTS = {
    each.__name__: each
    for module in (events, guard_events)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Event) and each.__module__ == module.__name__ and each is not Event
}


def documented() -> dict[str, tuple[str, set[str]]]:
    """Metric -> (kind, labels), as the table says."""
    rows = re.findall(r"^\| `(slotqueue_\w+)` \| (\w+) \| \w+ \|([^|]*)\|", DOCUMENT, re.MULTILINE)
    return {name: (kind, set(re.findall(r"[`*](\w+)[`*]", labels))) for name, kind, labels in rows}


async def test_every_metric_is_listed_with_its_kind_and_labels(redis_url: str) -> None:
    stage = Stage(redis_url)
    register(stage, hourly_job())
    slots = SlotQueue(redis_url, enqueuer=Fake())
    metrics = Metrics(slots)
    async with slots:
        await slots.tick()
        await metrics.exposition()
        found: dict[str, tuple[str, set[str]]] = {}
        for family in metrics.registry.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = {label for sample in family.samples for label in sample.labels} - {"namespace", "le"}
            found[name] = (family.type, labels)
    stage.close()
    said = documented()
    assert {name: kind for name, (kind, _) in found.items()} == {name: kind for name, (kind, _) in said.items()}
    for name, (_, labels) in found.items():
        assert labels <= said[name][1], name


def test_every_event_is_listed_with_its_level() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([A-Z]+) \|", DOCUMENT, re.MULTILINE)
    assert dict(rows) == {name: logging.getLevelName(each.level) for name, each in EVENTS.items()}
    assert len(rows) == len(EVENTS)


def test_rules_and_dashboard_ask_for_metrics_that_there_are() -> None:
    known = set(documented())
    known |= {f"{name}_bucket" for name, (kind, _) in documented().items() if kind == "histogram"}
    dashboard = json.loads((RULES / "dashboard.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked.append((RULES / "slotqueue.rules.yml").read_text(encoding="utf-8"))
    assert len(asked) > 10
    for text in asked:
        assert set(re.findall(r"\bslotqueue_\w+", text)) <= known, text


@pytest.mark.parametrize("command", [("check", "slotqueue.rules.yml"), ("test", "slotqueue.rules.test.yml")])
def test_promtool_finds_nothing_wrong_with_the_rules(command: tuple[str, str]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        assert not os.environ.get("CI"), "promtool is missing: Debian has it in the package prometheus"
        pytest.skip("promtool is not on the PATH: Debian has it in the package prometheus")
    verb, file = command
    found = subprocess.run([promtool, verb, "rules", file], cwd=RULES, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_example_is_sound() -> None:
    code = re.search(r"<!-- metrics -->\n```python\n(.*?)```", DOCUMENT, re.DOTALL)
    assert code is not None
    space: dict[str, object] = {}
    exec(compile(code[1], "docs/metrics.md", "exec"), space)
    assert callable(space["probes"])
