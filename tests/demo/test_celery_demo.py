"""The demo with Celery's workers: the same figures, the same endings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from slotqueue.store.connections import blocking_client
from tests.demo.stage_hand import alive, children_of, demo, run_demo
from tests.servers import Server

pytestmark = pytest.mark.slow


def test_with_celerys_workers_every_slot_is_done_once_and_a_redis_of_others_is_left_as_it_was(
    tmp_path: Path, own_server: Server
) -> None:
    client = blocking_client(own_server.url)
    client.zadd("unacked_index", {"theirs": 1})
    client.lpush("celery", "theirs")
    client.hset("ran:jobs", "report", "theirs")
    before = {key: (client.type(key), client.dump(key)) for key in client.scan_iter()}

    arguments = ("--worker", "celery", "--redis", own_server.url, "--replicas", "2", "--slots", "5", "--json")
    ended = run_demo(tmp_path, *arguments)

    after = {key: (client.type(key), client.dump(key)) for key in client.scan_iter()}
    client.close()
    assert ended.code == 0, ended.err
    figures = ended.figures
    assert (figures["done"], figures["lost"], figures["repeated"]) == (5, 0, 0)
    assert (figures["claimed"], figures["runs"], figures["enqueued"], figures["recovered"]) == (5, 6, 6, 2)
    assert figures["attempts"] == figures["claimed"] + figures["taken"] < 10
    assert "is KILLED between claim and enqueue" in ended.err
    assert "is KILLED in the middle of a job" in ended.err
    assert after == before
    assert len(before) == 3
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_celerys_workers_too(tmp_path: Path) -> None:
    with demo(tmp_path, "--worker", "celery", "--no-chaos", "--replicas", "1", "--workers", "1") as process:
        assert process.stdout is not None
        assert any("begun by" in line for line in process.stdout)
        children = children_of(process.pid)
        assert len(children) == 3

        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGINT
    assert err.startswith("Interrupted")
    assert alive(children) == []
    assert list(tmp_path.iterdir()) == []
