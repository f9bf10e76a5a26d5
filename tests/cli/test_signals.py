"""Signals and pipes: every verb ends quietly, and a pass finishes the enqueue in hand."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Start
from tests.cli.test_passes import HOURLY, known_for
from tests.hours import hourly
from tests.servers import Server
from tests.store.stage import HOUR, Stage

WriteApp = Callable[..., None]
IMPORTING = "import time\nprint('importing', flush=True)\ntime.sleep(60)\n"


@pytest.mark.parametrize("verb", ["next", "check", "slots", "show", "tick", "sweep"])
def test_ctrl_c_is_130_without_a_word_of_clicks(write_app: WriteApp, start: Start, verb: str) -> None:
    write_app(IMPORTING)
    words = ["app:slots", "ran:x:2026-10-02T03:00"] if verb == "show" else ["app:slots"]
    run = start(verb, *words)
    run.wait_for("importing")
    code, _ = run.stop(signal.SIGINT)
    assert code == 130
    assert "Aborted" not in run.out + run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_tick_finishes_the_enqueue_in_hand(
    write_app: WriteApp, start: Start, stage: Stage, redis_url: str, number: int, code: int
) -> None:
    write_app(HOURLY + "fake.seconds = 3\n", redis_url)
    assert start("tick", "app:slots").process.wait(40) == 0
    known_for(stage, "ping", HOUR)
    tick = start("tick", "app:slots")
    tick.wait_for("enqueuing ran:ping:")
    key = tick.out[tick.out.index("enqueuing ") :].split()[1]
    found, seconds = tick.stop(number)
    assert (found, seconds < 5) == (code, True)
    assert stage.state(key) == "sent"
    assert f"stopped by {signal.Signals(number).name}: " in tick.err


WITHOUT = """
import asyncio, signal
def missing(*args):
    raise NotImplementedError
asyncio.SelectorEventLoop.add_signal_handler = asyncio.SelectorEventLoop.remove_signal_handler = missing
for name in ("SIGALRM", "SIGHUP", "setitimer", "alarm"):
    delattr(signal, name)
"""
HERE = f"""
@slots.job({hourly()!r}, name="ping", lookback=2)
async def ping():
    print("running", flush=True)
    await asyncio.sleep(60)
"""


def test_a_tick_hands_its_functions_back_where_loops_know_no_signals_and_there_is_no_alarm(
    write_app: WriteApp, start: Start, stage: Stage, redis_url: str
) -> None:
    write_app(WITHOUT + HERE, redis_url)
    assert start("tick", "app:slots").process.wait(40) == 0
    known_for(stage, "ping", HOUR)
    tick = start("tick", "app:slots")
    tick.wait_for("running")
    code, seconds = tick.stop(signal.SIGINT)
    assert (code, seconds < 2) == (130, True)
    [tail] = stage.redis.zrange("ran:ping:slots", 0, -1)
    assert stage.state(f"ran:ping:{tail}") == "postponed"


def test_a_sweep_that_waits_leaves_at_once(write_app: WriteApp, start: Start, stage: Stage, redis_url: str) -> None:
    run = stage.running(stage.job(lease=60))
    stage.pass_deadline(run.slip.key)
    write_app('slots.add("rollup", Every(hours=1))\n', redis_url)
    sweep = start("sweep", "app:slots", "--wait", "60", "--log-level", "debug")
    deadline = stage.deadline(run.slip.key)
    while stage.deadline(run.slip.key) == deadline:
        assert sweep.process.poll() is None, sweep.err
    code, seconds = sweep.stop(signal.SIGTERM)
    assert (code, seconds < 5) == (143, True)


def test_a_tick_leaves_in_time_while_redis_does_not_answer(
    write_app: WriteApp, start: Start, own_server: Server
) -> None:
    write_app(HOURLY + "print('loaded', flush=True)\n", own_server.url)
    own_server.pause()
    tick = start("tick", "app:slots")
    tick.wait_for("loaded")
    code, seconds = tick.stop(signal.SIGTERM)
    own_server.resume()
    assert code in {143, 3}
    assert seconds < 5


@pytest.mark.parametrize("count", [1, 1000])
def test_a_reader_that_has_seen_enough_is_no_error(write_app: WriteApp, folder: Path, count: int) -> None:
    write_app('slots.add("ping", Every(minutes=1))\n')
    command = [sys.executable, "-m", "slotqueue", "next", "app:slots", "--offline", "-n", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(40) == 0
