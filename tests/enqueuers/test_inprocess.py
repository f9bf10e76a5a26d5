"""Functions of this process: `@slots.job` with nothing else installed, run by the replica that won."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis.asyncio

from slotqueue import ConfigurationError, Every, Policy, SlotQueue, current_slot
from slotqueue.enqueuers.inprocess import InProcessEnqueuer
from slotqueue.events import Event, JobUnknown, SlotClaimed
from slotqueue.guard_events import JobRaised, RunBegan, RunDone, RunFailed, RunLeftBehind, RunPostponed
from tests.servers import Server
from tests.stopwatch import Stopwatch
from tests.waiting import eventually


class Apps:
    """Makes applications whose jobs are functions of this process, and keeps what they tell."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.events: list[Event] = []
        self.redis = redis.asyncio.Redis.from_url(url, decode_responses=True)
        self._made: list[SlotQueue] = []

    def new(self, *, on_crash: Any = "complete", lease: float = 60, **arguments: Any) -> SlotQueue:
        arguments.setdefault("sweep_every", 0.2)
        defaults = Policy(on_crash=on_crash, lease=lease)
        app = SlotQueue(self.url, defaults=defaults, on_event=self.events.append, **arguments)
        self._made.append(app)
        return app

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def record(self, key: str) -> dict[str, str]:
        found: dict[str, str] = await self.redis.hgetall(f"{key}:record")
        return found

    async def reaches(self, key: str, state: str) -> dict[str, str]:
        async def there() -> dict[str, str] | None:
            record = await self.record(key)
            return record if record.get("state") == state else None

        reached: dict[str, str] = await eventually(there)
        return reached

    async def close(self) -> None:
        for app in self._made:
            await app.stop()
        await self.redis.aclose()


@asynccontextmanager
async def _apps(url: str) -> AsyncIterator[Apps]:
    apps = Apps(url)
    try:
        yield apps
    finally:
        await apps.close()


@pytest.fixture
async def apps(redis_url: str) -> AsyncIterator[Apps]:
    async with _apps(redis_url) as apps:
        yield apps


# ---- a run from begin to end


async def test_functions_run_without_any_enqueuer_and_know_their_slot(apps: Apps) -> None:
    slots, seen = apps.new(), {}

    @slots.job(Every(seconds=1), kwargs={"to": "all"})
    async def in_the_loop(to: str) -> None:
        seen[current_slot().key] = (to, threading.current_thread() is threading.main_thread())

    @slots.job(Every(seconds=1), name="sync", args=["some"])
    def in_a_thread(to: str) -> None:
        seen[current_slot().key] = (to, threading.current_thread() is threading.main_thread())

    async with slots:
        done = await eventually(lambda: len(apps.told(RunDone)) >= 2 and apps.told(RunDone))
        keys = {event.key for event in done}
        assert {seen[key] for key in keys if ":sync:" in key} == {("some", False)}
        assert {seen[key] for key in keys if ":in_the_loop:" in key} == {("all", True)}
        for key in keys:
            assert (await apps.record(key))["state"] == "done"
            assert await apps.redis.exists(f"{key}:done")


async def test_one_of_two_replicas_runs_a_slot(apps: Apps) -> None:
    ran: list[str] = []
    for each in (apps.new(), apps.new()):
        each.job(Every(seconds=1), name="counted")(lambda: ran.append(current_slot().key))
        await each.start()
    await eventually(lambda: len(set(ran)) >= 3)
    assert len(ran) == len(set(ran))


@pytest.mark.alone
async def test_a_long_function_delays_no_tick(apps: Apps) -> None:
    slots = apps.new()
    slots.job(Every(seconds=1), name="async")(functools.partial(asyncio.sleep, 30))
    slots.job(Every(seconds=1), name="sync")(functools.partial(time.sleep, 3))
    async with slots:
        await eventually(lambda: len(apps.told(SlotClaimed)) >= 6)
        assert max(event.late_ms for event in apps.told(SlotClaimed)) < 500


async def test_what_is_over_the_limit_waits_its_turn_and_keeps_its_place(apps: Apps) -> None:
    slots, running, order = apps.new(concurrency=1), [0], []

    def function(name: str) -> Callable[[], None]:
        def run() -> None:
            running[0] += 1
            assert running[0] == 1
            time.sleep(0.05)
            running[0] -= 1
            order.append((current_slot().fire_time, name))

        return run

    for name in ("a", "b", "c"):  # nothing is caught up: that is another order
        slots.job(Every(seconds=1), name=name, lookback=0)(function(name))
    async with slots:
        await eventually(lambda: len(order) >= 9)
    assert order == sorted(order, key=lambda entry: entry[0])
    assert apps.told(RunFailed) == []


async def test_a_pass_by_hand_is_over_when_its_functions_are(apps: Apps) -> None:
    slots, ran = apps.new(), []

    @slots.job(Every(seconds=1))
    async def job() -> None:
        await asyncio.sleep(0.2)
        ran.append(current_slot().key)

    while not (won := (await slots.tick())["won"]):
        assert ran == []
        await asyncio.sleep(0.1)
    assert len(ran) == len(apps.told(RunDone)) == won


# ---- ends that are none of the best


async def test_a_failure_is_recorded_and_its_traceback_is_told(apps: Apps) -> None:
    slots = apps.new()

    def fails() -> None:
        raise ValueError("no such customer")

    async def exits() -> None:
        sys.exit(3)

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    def stops_an_iteration() -> None:
        raise StopIteration

    for function in (fails, exits, cancels_itself, stops_an_iteration):
        slots.job(Every(seconds=1))(function)
    async with slots:
        await eventually(lambda: len({event.job for event in apps.told(RunFailed)}) == 4)
        await eventually(lambda: len({event.job for event in apps.told(JobRaised)}) == 4)
        told = {event.job: event for event in apps.told(RunFailed)}
        assert (await apps.record(told["fails"].key))["error"] == "ValueError: no such customer"
        assert told["exits"].error == "SystemExit: 3"
        assert told["cancels_itself"].state == "dead"
        trace = next(event.trace for event in apps.told(JobRaised) if event.job == "fails")
        assert 'raise ValueError("no such customer")' in trace


@pytest.mark.parametrize("on_crash", ["skip", "complete"])
async def test_a_replica_that_stops_hands_back_what_runs_and_what_waits(apps: Apps, on_crash: str) -> None:
    leaving, began = apps.new(on_crash=on_crash, concurrency=1, replica="leaving"), []

    @leaving.job(Every(seconds=1), name="long")
    async def long() -> None:
        began.append(current_slot().key)
        await asyncio.sleep(60)

    await leaving.start()
    await eventually(lambda: len(apps.told(SlotClaimed)) >= 2 and began)
    with Stopwatch() as watch:
        await leaving.stop()
    assert watch.seconds < 5
    assert [event.key for event in apps.told(RunPostponed)] == began
    assert await apps.redis.hlen("ran:workers") == 0

    again: list[str] = []
    staying = apps.new(on_crash=on_crash, replica="staying")
    staying.job(Every(seconds=1), name="long")(lambda: again.append(current_slot().key))
    await staying.start()
    handed_back = {event.key for event in apps.told(SlotClaimed) if event.replica.startswith("leaving")}
    await eventually(lambda: handed_back <= set(again))
    assert apps.told(JobUnknown) == []
    for key in handed_back:
        assert (await apps.reaches(key, "done")).get("spent", "0") == "0"


async def test_a_function_that_ends_within_a_second_ends_before_the_stop(apps: Apps) -> None:
    slots = apps.new()
    slots.job(Every(seconds=1), name="short")(functools.partial(asyncio.sleep, 0.3))
    await slots.start()
    await eventually(lambda: apps.told(RunBegan))
    await slots.stop()
    assert apps.told(RunPostponed) == []
    assert len(apps.told(RunDone)) == len(apps.told(RunBegan))


@pytest.mark.parametrize("on_crash, state", [("complete", "postponed"), ("skip", "running")])
async def test_a_thread_outlives_the_stop_and_only_a_repeat_that_is_wanted_follows(
    apps: Apps, on_crash: str, state: str
) -> None:
    slots, release = apps.new(on_crash=on_crash), threading.Event()
    slots.job(Every(seconds=1), name="deaf")(functools.partial(release.wait, 20))
    await slots.start()
    await eventually(lambda: apps.told(RunBegan))
    with Stopwatch() as watch:
        await slots.stop()
    assert watch.seconds < 5
    key = apps.told(RunBegan)[0].key
    assert (await apps.record(key))["state"] == state
    assert apps.told(RunLeftBehind)[0].is_handed_back == (on_crash == "complete")
    release.set()


# ---- a store that goes away


@pytest.fixture
async def apart(own_server: Server) -> AsyncIterator[Apps]:
    async with _apps(own_server.url) as apps:
        yield apps


@pytest.mark.alone
async def test_a_replica_stops_in_time_while_the_store_is_away(apart: Apps, own_server: Server) -> None:
    slots = apart.new()
    slots.job(Every(seconds=1), name="long")(functools.partial(asyncio.sleep, 60))
    await slots.start()
    await eventually(lambda: apart.told(RunBegan))
    own_server.pause()
    with Stopwatch() as watch:
        await slots.stop()
    assert watch.seconds < 5
    own_server.resume()


async def test_an_end_is_written_once_the_store_is_back(apart: Apps, own_server: Server) -> None:
    slots = apart.new()
    slots.job(Every(seconds=1), name="short")(functools.partial(asyncio.sleep, 0.3))
    await slots.start()
    await eventually(lambda: apart.told(RunBegan))
    own_server.pause()
    await asyncio.sleep(3.5)  # past a few tries; the store is away, so there is nothing to wait for
    own_server.resume()
    await apart.reaches(apart.told(RunBegan)[0].key, "done")


# ---- what is refused


@pytest.fixture
def slots() -> SlotQueue:
    return SlotQueue("redis://localhost:1", defaults=Policy(on_crash="skip"))


def _generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("what", [_generator, int, 7])
def test_what_cannot_run_to_an_end_is_refused(slots: SlotQueue, what: Any) -> None:
    with pytest.raises(ConfigurationError, match="cannot be run to an end"):
        slots.job(Every(seconds=1), name="odd")(what)
    assert not slots.jobs


def test_arguments_that_the_function_does_not_take_are_refused(slots: SlotQueue) -> None:
    with pytest.raises(ConfigurationError, match=r"missing a required argument: 'to'; .*takes \(to"):

        @slots.job(Every(seconds=1))
        def send(to: str) -> None: ...

    assert not slots.jobs


def test_two_functions_of_one_name_are_refused(slots: SlotQueue) -> None:
    @slots.job(Every(seconds=1))
    def send() -> None: ...

    with pytest.raises(ConfigurationError, match="a job of this name"):
        slots.job(Every(seconds=2))(send)
    slots.job(Every(seconds=2), name="send_again")(send)
    assert list(slots.jobs) == ["send", "send_again"]


def test_a_partial_needs_a_name(slots: SlotQueue) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        slots.job(Every(seconds=1))(functools.partial(print, "x"))


def test_a_queue_or_a_task_that_is_not_there_is_refused(slots: SlotQueue) -> None:
    here = InProcessEnqueuer()
    with pytest.raises(ConfigurationError, match="no function of this process is called 'nobody'"):
        slots.add("nobody", Every(seconds=1), enqueuer=here)
    here.add("somebody", print)
    with pytest.raises(ConfigurationError, match="queue"):
        slots.add("somebody", Every(seconds=1), enqueuer=here, queue="high")
    slots.add("somebody", Every(seconds=1), enqueuer=here)


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True, 10_001])
def test_a_limit_that_is_none_is_refused(concurrency: Any) -> None:
    with pytest.raises(ConfigurationError, match="concurrency"):
        SlotQueue("redis://localhost:1", concurrency=concurrency)


def test_a_waiting_slot_is_enqueued_again_after_half_a_minute_unless_the_job_says_otherwise(slots: SlotQueue) -> None:
    slots.job(Every(hours=1), name="plain")(print)
    slots.job(Every(hours=1), name="other", requeue_after=7)(print)
    assert [job.terms.requeue for job in slots.jobs.values()] == [30_000, 7_000]


@pytest.mark.processes
def test_no_worker_system_needs_to_be_installed(redis_url: str) -> None:
    program = f"""
        import asyncio, sys
        sys.modules["arq"] = sys.modules["celery"] = sys.modules["kombu"] = None
        from slotqueue import Every, SlotQueue
        slots, done = SlotQueue({redis_url!r}), asyncio.Event()

        @slots.job(Every(seconds=1), on_crash="skip")
        async def job():
            done.set()

        asyncio.run(slots.run(done))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
