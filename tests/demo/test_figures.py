"""What the demo counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.demo.stage_hand import run_demo

pytestmark = pytest.mark.slow


def test_without_chaos_it_gives_the_figure_of_the_guide(tmp_path: Path) -> None:
    ended = run_demo(tmp_path, "--no-chaos", "--json")

    assert ended.code == 0, ended.err
    assert list(ended.figures) == [
        *("replicas", "workers", "slots", "attempts", "claimed", "taken", "enqueued"),
        *("runs", "done", "repeated", "lost", "recovered", "seconds"),
    ]
    counts = {name: count for name, count in ended.figures.items() if name != "seconds"}
    assert counts == {
        "replicas": 5,
        "workers": 2,
        "slots": 10,
        "attempts": 50,
        "claimed": 10,
        "taken": 40,
        "enqueued": 10,
        "runs": 10,
        "done": 10,
        "repeated": 0,
        "lost": 0,
        "recovered": 0,
    }
    assert len(ended.out.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_with_a_replica_and_a_worker_killed_every_slot_is_done_once(tmp_path: Path) -> None:
    ended = run_demo(tmp_path, "--json")

    assert ended.code == 0, ended.err
    figures = ended.figures
    assert (figures["done"], figures["lost"], figures["repeated"]) == (10, 0, 0)
    assert figures["recovered"] >= 2
    assert (figures["claimed"], figures["runs"], figures["enqueued"]) == (10, 11, 11)
    assert figures["attempts"] == figures["claimed"] + figures["taken"] < 50
    assert figures["seconds"] < 120, "less than arq's own time-outs"
    assert "is KILLED between claim and enqueue" in ended.err
    assert "is KILLED in the middle of a job" in ended.err
    assert ended.err.count("sweep takes over") == 2
    assert list(tmp_path.iterdir()) == []


def test_the_last_of_its_kind_is_replaced(tmp_path: Path) -> None:
    ended = run_demo(tmp_path, "--replicas", "1", "--workers", "1", "--slots", "1", "--json")

    assert ended.code == 0, ended.err
    assert (ended.figures["done"], ended.figures["lost"], ended.figures["repeated"]) == (1, 0, 0)
    assert "replica-2 starts" in ended.err
    assert "worker-2 starts" in ended.err
