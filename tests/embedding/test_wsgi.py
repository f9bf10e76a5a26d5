"""Flask and Django by gunicorn: one ticker a worker, none in the master, whenever the application is imported."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.embedding.conftest import Serve
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

SETTINGS = 'SECRET_KEY = "for tests"\nALLOWED_HOSTS = ["*"]\nROOT_URLCONF = "settings"\nurlpatterns = []\n'
QUICKLY = ("--workers", "2", "--bind", "127.0.0.1:{port}", "--no-control-socket")


def test_preloaded_workers_tick_and_the_master_does_not(serve: Serve) -> None:
    server = serve("flask.md", "gunicorn", "app:app", "--preload", *QUICKLY)
    pids = server.has_replicas(2)
    assert server.process.pid not in pids
    server.answers("/ready", 200)
    server.has_done("refresh_cache", 2)
    victim = min(pids)
    os.kill(victim, signal.SIGKILL)
    later = wait_until(lambda: server.pids() - pids, why=server.text)
    assert server.process.pid not in later
    assert server.terminate() < 10
    assert server.pids() == {victim}, "who leaves in order says so"


def test_workers_that_import_django_themselves_tick(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(SETTINGS)
    server = serve("django.md", "gunicorn", "wsgi:application", *QUICKLY)
    pids = server.has_replicas(2)
    assert server.process.pid not in pids
    server.has_done("clear_sessions", 2)
    assert server.terminate() < 10
    assert server.pids() == set()
