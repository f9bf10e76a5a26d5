"""Every example is run as its README says."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import cast

import pytest
import redis

from tests.acceptance.test_readme import BIN, Printing

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.alone


def test_every_example_has_a_test() -> None:
    assert {folder.name for folder in EXAMPLES.iterdir() if (folder / "app.py").exists()} == {"arq_service"}


def test_the_arq_service_charges_each_customer_once_a_slot(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    folder = EXAMPLES / "arq_service"
    started = [Printing([str(BIN / "arq"), "app.WorkerSettings"], folder)]
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    try:
        started[0].await_line("Starting worker")
        started += [Printing([sys.executable, "-m", "slotqueue", "run", "app:slots"], folder) for _ in range(2)]
        for replica in started[1:]:
            replica.await_line("ready: 3 jobs")
        until = time.monotonic() + 20
        while cast("int", client.llen("ledger")) < 6 and time.monotonic() < until:
            time.sleep(0.05)
        charged = cast("list[str]", client.lrange("ledger", 0, 5))
        assert len(charged) == len(set(charged)) == 6
        assert {entry.split()[1] for entry in charged} == {"ada", "grace"}
    finally:
        client.close()
        for process in started:
            process.stop()
