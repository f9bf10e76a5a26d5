"""The page on Kubernetes: its probes answer, and the command of its CronJob makes its passes."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import redis
from fastapi import Response

from slotqueue import Every, SlotQueue
from tests.embedding.serving import BIN
from tests.embedding.snippets import DOCS, write_snippets
from tests.waiting import eventually

PAGE = "kubernetes.md"


@pytest.fixture
def probes(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    write_snippets(PAGE, tmp_path, redis_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("probes")
    sys.modules.pop("probes", None)


async def test_the_probes_are_routes_that_answer(probes: Any) -> None:
    text = (DOCS / PAGE).read_text()
    asked = set(re.findall(r"Probe: \{ httpGet: \{ path: (\S+),", text))
    assert asked <= {route.path for route in probes.app.routes}
    response = Response()
    assert (probes.ready(response)["ticks"], response.status_code) == (False, 503)
    async with probes.app.router.lifespan_context(probes.app):
        await eventually(lambda: probes.slots.is_ready)
        assert (probes.ready(response)["ticks"], response.status_code) == (True, 200)


APP = """
from slotqueue import Every, SlotQueue, current_slot
slots = SlotQueue({url!r})
@slots.job(Every(seconds=1), on_crash="skip")
async def refresh_cache():
    print("refreshing for", current_slot().fire_time)
"""


@pytest.mark.processes
async def test_the_command_of_the_cron_job_runs_functions_to_their_end(redis_url: str, tmp_path: Path) -> None:
    command = re.search(r'command: \["sh", "-c", "(.*?)"\]', (DOCS / PAGE).read_text())
    assert command
    (tmp_path / "app.py").write_text(APP.format(url=redis_url))
    known = SlotQueue(redis_url)
    known.job(Every(seconds=1), name="refresh_cache", on_crash="skip")(print)
    await known.tick()  # a job owes nothing from before its first pass
    await known.close()
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        client.zremrangebyrank("ran:refresh_cache:slots", 0, -1)
        await asyncio.sleep(1)
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        passes = await asyncio.create_subprocess_exec(
            *("sh", "-c", command[1]), cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await passes.communicate()
        assert passes.returncode == 0
        assert b"refreshing for" in out
        keys = cast("list[str]", client.zrange("ran:refresh_cache:slots", 0, -1))
        states = {client.hget(f"ran:refresh_cache:{key}:record", "state") for key in keys}
    assert states == {"done"}
