"""Short soaks with fixed seeds: every promise is kept; and each planted bug is found."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.soak.bugs import BUGS
from tests.soak.crew import FAKETIME
from tests.soak.soak import Plan, Soak

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.timeout(300)]

_SECONDS = float(os.environ.get("SLOTQUEUE_TEST_SOAK", "20"))
"""CI asks for two minutes."""

_BREAKS = {
    "done marker not written": "every slot ends",
    "claim without NX": "slots are claimed once",
    "sweep ignoring the lease": "leases exclude each other",
    "an end counted twice": "counters sum to slots due",
}


@pytest.mark.parametrize("worker, seed", [("arq", 1), ("celery", 2)])
def test_every_promise_is_kept(worker: str, seed: int, tmp_path: Path) -> None:
    if importlib.util.find_spec(worker) is None:
        pytest.skip(f"{worker} is not installed here")
    assert FAKETIME is not None or not os.environ.get("CI"), "install libfaketime: replicas shall have wrong clocks"
    with Soak(Plan(seed, _SECONDS, worker, settle_s=150), tmp_path) as soak:
        outcome = soak.run()
    assert not outcome.violations, "\n".join(map(str, outcome.violations))
    figures = outcome.figures
    assert sum(figures.outcomes.values()) == figures.slots > 0
    assert figures.outcomes["done"] > 0
    print(figures)


@pytest.mark.skipif(importlib.util.find_spec("arq") is None, reason="arq is not installed here")
@pytest.mark.parametrize(
    "bugs",
    [
        ("done marker not written",),
        ("claim without NX",),
        ("sweep ignoring the lease", "an end counted twice"),  # neither hides the other, nor breaks its rule
    ],
)
def test_planted_bugs_are_found(bugs: tuple[str, ...], tmp_path: Path) -> None:
    plan = Plan(1, 8, bugs=bugs, kinds=("terminated",), settle_s=5)
    with Soak(plan, tmp_path) as soak:
        outcome = soak.run()
    assert {_BREAKS[bug] for bug in bugs} <= {violation.rule for violation in outcome.violations}
    assert BUGS.keys() == _BREAKS.keys()
