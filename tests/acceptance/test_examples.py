"""Every example is run as its README says."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from pathlib import Path
from typing import cast

import pytest
import redis

from tests.acceptance.test_readme import BIN, Printing
from tests.embedding.serving import Serving

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.processes


def test_every_example_has_a_test() -> None:
    """That of `examples/NAME` begins with `test_the_NAME_`, or has a module `test_NAME` of its own."""
    examples = {folder.name for folder in EXAMPLES.iterdir() if (folder / "app.py").exists()}
    modules = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    tests = [name for name in globals() if name.startswith("test_the_")]
    examples -= modules
    assert {name for name in examples if not any(each.startswith(f"test_the_{name}_") for each in tests)} == set()


def test_the_arq_service_charges_each_customer_once_a_slot(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("arq")
    monkeypatch.setenv("REDIS_URL", redis_url)
    folder = EXAMPLES / "arq_service"
    started = [Printing([str(BIN / "arq"), "app.WorkerSettings"], folder)]
    try:
        started[0].await_line("Starting worker")
        started += [Printing([sys.executable, "-m", "slotqueue", "run", "app:slots"], folder) for _ in range(2)]
        for replica in started[1:]:
            replica.await_line("ready: 3 jobs")
        await_charges(redis_url)
    finally:
        for process in started:
            process.stop()


def test_the_fastapi_service_runs_light_jobs_itself_and_sends_heavy_ones_to_arq(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs("arq")
    monkeypatch.setenv("REDIS_URL", redis_url)
    shutil.copy(EXAMPLES / "fastapi_service" / "app.py", tmp_path)
    worker = Printing([str(BIN / "arq"), "app.WorkerSettings"], tmp_path)
    service = Serving(["uvicorn", "app:app", "--workers", "2", "--port", "{port}"], tmp_path, redis_url)
    try:
        assert service.process.pid not in service.has_replicas(2)
        service.answers("/ready", 200)
        worker.await_line("report ● ")
        service.has_done("refresh_rates", 2)
        service.answers("/rates", 200)
        written = service.redis.lrange("ledger", 0, -1)
        assert len(written) == len(set(written)), "each slot once, over all processes"
        assert service.terminate() < 10
        assert service.pids() == set()
    finally:
        service.close()
        worker.stop()


def test_the_celery_service_charges_each_customer_once_a_slot(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("celery")
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("BROKER_URL", redis_url)
    command = [str(BIN / "celery"), "-A", "app", "worker", "--concurrency", "1", "--loglevel", "INFO", "-n"]
    workers = [Printing([*command, f"worker-{i}"], EXAMPLES / "celery_service") for i in range(2)]
    try:
        for worker in workers:
            worker.await_line("enlisted, ", seconds=50)
        await_charges(redis_url, slots=1)
        workers.pop().stop()
        await_charges(redis_url, slots=2)
    finally:
        for worker in workers:
            worker.stop()


def needs(package: str) -> None:
    """Skip where a worker system is missing: the newest Celery and arq need different releases of redis-py."""
    if importlib.util.find_spec(package) is None:
        assert os.environ.get(f"SLOTQUEUE_TEST_{package.upper()}") != "required", f"{package} is not installed here"
        pytest.skip(f"{package} is not installed here")


def await_charges(url: str, slots: int = 3) -> None:
    """Wait until both customers were charged for so many more slots; nobody was charged twice for one."""
    client = redis.Redis.from_url(url, decode_responses=True)
    try:
        wanted = cast("int", client.llen("ledger")) + 2 * slots
        until = time.monotonic() + 60
        while cast("int", client.llen("ledger")) < wanted and time.monotonic() < until:
            time.sleep(0.05)
        charged = cast("list[str]", client.lrange("ledger", 0, wanted - 1))
    finally:
        client.close()
    assert len(charged) == len(set(charged)) == wanted
    assert {entry.split()[1] for entry in charged} == {"ada", "grace"}
