"""Starlette and FastAPI: `slots.lifespan`, alone and within an application's own."""

from __future__ import annotations

import importlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from slotqueue import SlotQueue
from tests.embedding.conftest import Serve
from tests.embedding.snippets import write_snippets
from tests.stopwatch import Stopwatch
from tests.waiting import eventually, wait_until

pytestmark = pytest.mark.processes


def test_a_reload_leaves_one_replica(serve: Serve, tmp_path: Path) -> None:
    server = serve("fastapi.md", "uvicorn", "app:app", "--reload", "--port", "{port}")
    before = server.has_replicas(1)
    server.answers("/ready", 200)
    server.has_done("refresh_cache", 1)
    assert "refreshing for" in server.text()
    app = tmp_path / "app.py"
    app.write_text(app.read_text() + "\n# another line\n")
    wait_until(lambda: len(pids := server.pids()) == 1 and pids != before, why=server.text)


@pytest.fixture
def composed(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    write_snippets("fastapi.md", tmp_path, redis_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("app", "lifespan"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("lifespan")
    yield module
    for name in ("app", "lifespan"):
        sys.modules.pop(name, None)


async def test_it_stands_in_an_applications_own_lifespan(composed: Any) -> None:
    app, slots = composed.app, composed.slots
    async with app.router.lifespan_context(app):
        await eventually(lambda: slots.is_ready)
        assert app.state.pool
    assert not slots.is_ready
    assert app.state.pool == []


@pytest.mark.parametrize("framework", [Starlette, FastAPI])
async def test_an_application_starts_while_redis_is_away_and_stops_in_time(framework: Any) -> None:
    slots = SlotQueue("redis://127.0.0.1:1")
    app = framework(lifespan=slots.lifespan)
    with ExitStack() as stack:
        async with app.router.lifespan_context(app):
            assert not slots.is_ready
            watch = stack.enter_context(Stopwatch())
    assert watch.seconds < 5
