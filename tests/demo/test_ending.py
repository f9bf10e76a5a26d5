"""However the demo ends, nothing of it is left."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from slotqueue.store.connections import blocking_client
from tests.demo.stage_hand import alive, children_of, demo, run_demo, wait_until_dead
from tests.servers import Server

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_leaves_no_process_and_no_file(tmp_path: Path, number: signal.Signals) -> None:
    with demo(tmp_path, "--no-chaos") as process:
        assert process.stdout is not None
        assert any("begun by" in line for line in process.stdout)
        children = children_of(process.pid)
        assert len(children) == 8

        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert err.startswith("Interrupted")
    assert alive(children) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("births", [1, 4, 8])
def test_a_signal_while_it_starts_leaves_no_process(tmp_path: Path, births: int) -> None:
    with demo(tmp_path) as process:
        while len(children := children_of(process.pid)) < births:
            time.sleep(0.002)

        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            children |= children_of(process.pid)
            time.sleep(0.01)

    assert process.returncode == 128 + signal.SIGINT
    assert alive(children) == []
    assert list(tmp_path.iterdir()) == []


def test_a_replica_that_dies_without_an_order_ends_the_demo_with_its_last_lines(tmp_path: Path) -> None:
    with demo(tmp_path, "--no-chaos") as process:
        assert process.stdout is not None
        assert any("claimed by" in line for line in process.stdout)
        children = children_of(process.pid)
        victim = next(pid for pid, command in children.items() if "slotqueue.demo.replica" in command)
        os.kill(victim, signal.SIGABRT)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "ended unexpectedly (signal 6); its last lines:" in err
    assert alive(children) == []


def test_it_ends_when_the_demo_itself_is_killed(tmp_path: Path) -> None:
    with demo(tmp_path, "--no-chaos") as process:
        assert process.stdout is not None
        assert any("claimed by" in line for line in process.stdout)
        children = children_of(process.pid)
        process.kill()
        process.communicate(timeout=60)

        crew = [pid for pid, command in children.items() if "slotqueue.demo" in command and "--port" not in command]
        try:
            wait_until_dead(crew)
        finally:
            for server in set(children) - set(crew):  # this one alone cannot tell
                os.kill(server, signal.SIGKILL)

    assert len(crew) == 7


def test_a_redis_of_others_is_left_as_it_was(tmp_path: Path, own_server: Server) -> None:
    client = blocking_client(own_server.url)
    client.set("ran:report:2026-10-02T03:00", "theirs")
    client.zadd("arq:queue", {"theirs": 1})
    client.hset("ran:jobs", "report", "theirs")
    before = {key: (client.type(key), client.dump(key)) for key in client.scan_iter()}

    ended = run_demo(tmp_path, "--redis", own_server.url, "--replicas", "2", "--slots", "2", "--json")

    after = {key: (client.type(key), client.dump(key)) for key in client.scan_iter()}
    client.close()
    assert ended.code == 0, ended.err
    assert (ended.figures["done"], ended.figures["recovered"]) == (2, 1)
    assert after == before
    assert len(before) == 3


def test_what_is_kept_can_be_looked_at_and_stopped(tmp_path: Path) -> None:
    ended = run_demo(tmp_path, "--keep", "--no-chaos", "--slots", "1", "--replicas", "1", "--workers", "1")

    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    url = next(words[3] for words in lines if words[:3] == ["slotqueue", "slots", "--redis"])
    stop = next(words for words in lines if words[:1] == ["kill"])
    client = blocking_client(url)
    assert client.exists("ran:report:slots") == 1
    client.close()
    assert Path(stop[-1]).parent == tmp_path
    os.kill(int(stop[1]), signal.SIGTERM)
    wait_until_dead([int(stop[1])])
