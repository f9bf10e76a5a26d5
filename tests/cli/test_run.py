"""`slotqueue run`, the real command: it gets ready, and it leaves in order whatever Redis does."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from slotqueue.protocols import Process
from tests.cli.conftest import Slotqueue, Start
from tests.servers import Server
from tests.store.stage import Stage

pytestmark = pytest.mark.processes

WriteApp = Callable[..., None]
EVERY_SECOND = 'slots.add("ping", Every(seconds=1))\n'


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_gets_ready_enqueues_and_leaves_on_a_signal(
    write_app: WriteApp, start: Start, slotqueue: Slotqueue, redis_url: str, number: int
) -> None:
    write_app(EVERY_SECOND, redis_url)
    assert slotqueue("jobs", "put", "stored", "@daily", "--on-crash", "skip", "--redis", redis_url).exit_code == 0
    run = start("run", "app:slots")
    run.wait_for("ready: 2 jobs in the namespace 'ran'")
    run.wait_for("enqueuing ran:ping:")
    run.wait_for(" enqueued")
    code, seconds = run.stop(number)
    assert (code, seconds < 5) == (0, True)
    assert run.err.splitlines()[-1].endswith(f"INFO stopped by {signal.Signals(number).name}")


def test_it_finishes_the_enqueue_in_hand(write_app: WriteApp, start: Start, stage: Stage, redis_url: str) -> None:
    write_app(EVERY_SECOND + "fake.seconds = 3\n", redis_url)
    run = start("run", "app:slots")
    run.wait_for("enqueuing ran:ping:")
    key = run.out[run.out.index("enqueuing ") :].split()[1]
    assert stage.state(key) == "claimed"
    code, seconds = run.stop(signal.SIGTERM)
    assert (code, seconds < 5) == (0, True)
    assert stage.state(key) == "sent"
    assert stage.redis.hlen("ran:replicas") == 1  # the stage's own: it left the registry


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_leaves_in_time_while_redis_refuses_connections(write_app: WriteApp, start: Start, number: int) -> None:
    write_app(EVERY_SECOND)
    run = start("run", "app:slots")
    run.wait_for("what is due stays due")
    code, seconds = run.stop(number)
    assert (code, seconds < 5) == (0, True)


def test_it_leaves_in_time_while_redis_does_not_answer(write_app: WriteApp, start: Start, own_server: Server) -> None:
    write_app(EVERY_SECOND, own_server.url)
    run = start("run", "app:slots")
    run.wait_for("ready:")
    own_server.pause()
    run.wait_for("what is due stays due")
    code, seconds = run.stop(signal.SIGTERM)
    own_server.resume()
    assert (code, seconds < 5) == (0, True)


def test_it_leaves_in_time_although_something_blocks_the_end(write_app: WriteApp, start: Start, redis_url: str) -> None:
    """A thread of the loop's executor that hangs, as in a name server that does not answer."""
    hang = "import time\nasync def close(): asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)\n"
    write_app(f"{hang}fake.close = close\n", redis_url)
    run = start("run", "app:slots")
    run.wait_for("ready:")
    code, seconds = run.stop(signal.SIGTERM)
    assert (code, seconds < 5) == (0, True)
    assert "not everything could be closed" in run.err


def test_a_signal_during_the_import_ends_it_in_order(write_app: WriteApp, start: Start) -> None:
    write_app("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    run = start("run", "app:slots")
    run.wait_for("importing")
    code, seconds = run.stop(signal.SIGTERM)
    assert (code, seconds < 5) == (0, True)


def test_a_second_signal_ends_it_at_once(write_app: WriteApp, start: Start, redis_url: str) -> None:
    write_app(EVERY_SECOND + "fake.seconds = 7\n", redis_url)
    run = start("run", "app:slots")
    run.wait_for("enqueuing ran:ping:")
    run.hear(signal.SIGINT)
    code, seconds = run.stop(signal.SIGINT)
    assert (code, seconds < 1) == (130, True)


def test_it_works_where_event_loops_know_no_signal_handlers(write_app: WriteApp, start: Start, redis_url: str) -> None:
    patch = """
def missing(*args):
    raise NotImplementedError
asyncio.SelectorEventLoop.add_signal_handler = missing
"""
    write_app(patch + EVERY_SECOND, redis_url)
    run = start("run", "app:slots")
    run.wait_for("ready:")
    assert run.stop(signal.SIGTERM)[0] == 0


def test_it_starts_while_redis_is_away_and_goes_on_when_it_comes(
    write_app: WriteApp, start: Start, own_server: Server
) -> None:
    url = own_server.url
    own_server.stop()
    write_app(EVERY_SECOND, url)
    run = start("run", "app:slots")
    run.wait_for("what is due stays due")
    assert "ready:" not in run.out
    own_server.start()
    run.wait_for("ready:")
    run.wait_for("enqueuing ran:ping:")
    assert run.stop(signal.SIGTERM)[0] == 0


def test_the_log_level_is_a_choice(write_app: WriteApp, start: Start, stage: Stage, redis_url: str) -> None:
    write_app(EVERY_SECOND, redis_url)
    stage.run(stage.verbs.enlist(Process("w1", tasks=("fake:ping",))))  # an unguarded task would be a warning
    run = start("run", "app:slots", "--log-level", "warning")
    run.wait_for("enqueuing ran:ping:")
    assert run.stop(signal.SIGTERM)[0] == 0
    assert run.err == ""


def test_the_application_may_come_from_the_environment(write_app: WriteApp, start: Start, redis_url: str) -> None:
    write_app(EVERY_SECOND, redis_url)
    run = start("run", SLOTQUEUE_APP="app:slots")
    run.wait_for("ready:")
    assert run.stop(signal.SIGTERM)[0] == 0


def test_an_application_that_cannot_be_loaded_ends_it_with_2(start: Start) -> None:
    run = start("run", "app:slots")
    assert run.process.wait(40) == 2
    assert run.err.startswith("Error: there is no module 'app' in ")
    assert len(run.err.splitlines()) == 1


def test_a_namespace_of_another_application_ends_it_with_2(
    write_app: WriteApp, start: Start, stage: Stage, redis_url: str
) -> None:
    stage.redis.set("ran:app", "shop", ex=60)
    write_app(f"slots = SlotQueue({redis_url!r}, enqueuer=fake, app='billing')\n")
    run = start("run", "app:slots")
    assert run.process.wait(40) == 2
    assert "belongs to the app 'shop', and this is 'billing': give it a namespace of its own" in run.err
    assert len(run.err.splitlines()) == 1
    assert run.out == ""


def test_the_password_stays_out_of_every_line(write_app: WriteApp, start: Start) -> None:
    write_app(EVERY_SECOND, "redis://user:hunter2@127.0.0.1:1/0")
    run = start("run", "app:slots")
    run.wait_for("what is due stays due")
    run.stop(signal.SIGTERM)
    assert "hunter2" not in run.out + run.err
    assert "user:***@127.0.0.1:1" in run.err
