"""Metrics and probes: a scrape that the official parser reads, one outcome a slot, and probes by the tick's own age."""

from __future__ import annotations

import asyncio
import json
import signal
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from slotqueue import ConfigurationError, Every, SlotQueue, SlotState
from slotqueue.events import EnqueueRefused, PassFailed, SlotBroken, SlotHeld, SlotSkipped, SlotTaken, SlotTakenOver
from slotqueue.guard_events import RunBegan, RunDone
from slotqueue.http import Endpoint, Server, address
from slotqueue.metrics import OTHERS, Metrics
from tests.cli.conftest import Slotqueue, Start
from tests.cli.test_ops import Fake
from tests.hours import hourly
from tests.store.registering import hourly_job, register
from tests.store.stage import DAY, HOUR, Stage
from tests.waiting import eventually

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
KEY = "ran:a:2026-11-30T12:00"


def parsed(text: bytes) -> Samples:
    """Every sample of a scrape, but for the constant label."""
    return {
        (sample.name, tuple(sorted((name, value) for name, value in sample.labels.items() if name != "namespace"))): (
            sample.value
        )
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


@pytest.fixture
async def slots(redis_url: str) -> AsyncIterator[SlotQueue]:
    slots = SlotQueue(redis_url, enqueuer=Fake())
    yield slots
    await slots.close()


async def test_every_slot_that_was_due_is_in_one_outcome(slots: SlotQueue, stage: Stage) -> None:
    register(stage, hourly_job())
    states = [state for state in SlotState if state is not SlotState.HELD]  # a stage holds by losing another slot
    for state in states:
        stage.in_state(state)
    samples = parsed(await Metrics(slots).exposition())
    ends = Counter({dict(labels)["outcome"]: number for (name, labels), number in samples.items() if "ended" in name})
    assert ends == {state.value: 1 for state in states if not state.is_open}
    opened = value(samples, "slotqueue_open_slots", job="rollup")
    assert ends.total() + opened == value(samples, "slotqueue_slots_claimed_total") == len(states)
    assert value(samples, "slotqueue_dead_letters", job="rollup") == 2
    assert value(samples, "slotqueue_redis_up") == 1


async def test_slots_that_nobody_decides_are_seen_until_they_are_missed_and_counted(
    slots: SlotQueue, stage: Stage
) -> None:
    slots.add("rollup", hourly(), on_crash="complete", lookback=0, task="do_rollup")
    job = slots.jobs["rollup"]
    register(stage, job, since=stage.now() - DAY, decided=stage.now() - 5 * HOUR)
    metrics = Metrics(slots)
    samples = parsed(await metrics.exposition())
    assert value(samples, "slotqueue_undecided_slots", job="rollup") == 5
    await slots.tick()
    metrics._observed_at = float("-inf")
    samples = parsed(await metrics.exposition())
    assert value(samples, "slotqueue_undecided_slots", job="rollup") == 0
    assert value(samples, "slotqueue_slots_ended_total", job="rollup", outcome="missed") == 4
    assert value(samples, "slotqueue_slots_ended_total", job="rollup", outcome="sent") == 1
    assert value(samples, "slotqueue_claims_total", result="won") == 1
    assert value(samples, "slotqueue_claim_lateness_seconds_count") == 1


async def test_what_this_process_does_is_counted_here(slots: SlotQueue) -> None:
    metrics = Metrics(slots)
    for event in (
        SlotTaken(KEY, "a", "r1"),
        SlotHeld(KEY, "a", "b"),
        SlotSkipped(KEY, "a", "paused"),
        EnqueueRefused(KEY, "a", 0, "full"),
        SlotTakenOver(KEY, "a", "r1", "queued", 1),
        PassFailed("tick", "no"),
        SlotBroken(KEY, "a", "damaged"),
        RunBegan(KEY, "a", "w1", 1, 1, 1500),
        RunBegan(KEY, "a", "w1", 1, 1, None),
        RunDone(KEY, "a", "w1", 12.5),
    ):
        slots.events(event)
    samples = parsed(await metrics.exposition())
    for result in ("taken", "held", "skipped"):
        assert value(samples, "slotqueue_claims_total", result=result) == 1
    assert value(samples, "slotqueue_claims_total", result="won") == 0
    for name in ("enqueue_errors", "take_overs", "failed_passes", "broken_slots"):
        assert value(samples, f"slotqueue_{name}_total") == 1, name
    assert value(samples, "slotqueue_queue_time_seconds_count") == 1
    assert value(samples, "slotqueue_queue_time_seconds_sum") == 1.5
    assert value(samples, "slotqueue_run_time_seconds_sum") == 12.5


async def test_labels_are_bounded_whatever_the_number_of_jobs(slots: SlotQueue, stage: Stage) -> None:
    register(stage, *(hourly_job(f"job-{number:02}") for number in range(20)))
    for name in ("job-00", "job-07", "job-19"):
        stage.queued(hourly_job(name))
    few = parsed(await Metrics(slots, most_jobs=2).exposition())
    assert {dict(labels)["job"] for (name, labels) in few if name == "slotqueue_open_slots"} == {
        *("job-00", "job-01"),
        OTHERS,
    }
    assert value(few, "slotqueue_open_slots", job=OTHERS) == 2
    none = parsed(await Metrics(slots, per_job=False).exposition())
    assert value(none, "slotqueue_open_slots") == 3
    assert not any("job" in dict(labels) for _, labels in none)
    with pytest.raises(ConfigurationError, match="most_jobs"):
        Metrics(slots, most_jobs=-1)


async def test_ten_thousand_jobs_are_a_thousand_labels_and_no_more(slots: SlotQueue, stage: Stage) -> None:
    jobs = [hourly_job(f"job-{number:04}") for number in range(10_000)]
    for first in range(0, len(jobs), 1000):
        register(stage, *jobs[first : first + 1000])
    stage.queued(jobs[-1])
    samples = parsed(await Metrics(slots).exposition())
    labelled = Counter(name for name, labels in samples if "job" in dict(labels))
    assert labelled["slotqueue_open_slots"] == max(labelled.values()) == 1001
    assert value(samples, "slotqueue_open_slots", job=OTHERS) == 1


async def test_who_is_there_and_when_anybody_ticked_last(slots: SlotQueue, stage: Stage) -> None:
    stage.guard(hourly_job())
    slots.add("rollup", Every(hours=1), on_crash="skip")
    async with slots:
        await slots.tick()
        samples = parsed(await Metrics(slots).exposition())
    assert value(samples, "slotqueue_replicas") == 2
    assert value(samples, "slotqueue_workers") == 1
    assert value(samples, "slotqueue_jobs") == 1
    for name in ("slotqueue_last_tick_timestamp_seconds", "slotqueue_fleet_last_tick_timestamp_seconds"):
        assert abs(value(samples, name) - time.time()) < 30
    assert abs(value(samples, "slotqueue_clock_offset_seconds")) < 5


async def test_without_redis_a_scrape_says_so_and_what_it_does_not_know_is_left_out() -> None:
    slots = SlotQueue("redis://127.0.0.1:1/0", enqueuer=Fake())
    samples = parsed(await Metrics(slots).exposition())
    assert value(samples, "slotqueue_redis_up") == 0
    assert value(samples, "slotqueue_enqueue_errors_total") == 0
    assert not any(name == "slotqueue_open_slots" for name, _ in samples)
    await slots.close()


async def test_scrapes_at_once_observe_once(slots: SlotQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    observe = slots.ops.observe

    async def counted() -> Any:
        asked.append(1)
        return await observe()

    monkeypatch.setattr(slots.ops, "observe", counted)
    metrics = Metrics(slots)
    await asyncio.gather(*(metrics.exposition() for _ in range(5)))
    await metrics.exposition()
    assert len(asked) == 1


# ---- probes


async def ask_asgi(endpoint: Endpoint, path: str, method: str = "GET") -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    await endpoint({"type": "http", "path": path, "method": method}, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_probes_judge_the_ticks_own_age(slots: SlotQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(slots, Metrics(slots))
    assert (await ask_asgi(endpoint, "/livez"))[0] == (await ask_asgi(endpoint, "/readyz"))[0] == 503
    async with slots:
        await eventually(lambda: slots.is_ready)
        status, body = await ask_asgi(endpoint, "/readyz")
        assert (status, json.loads(body)["ok"]) == (200, True)
        assert json.loads(body)["tick_age"] < 10
        assert (await ask_asgi(endpoint, "/livez"))[0] == 200
        assert (await ask_asgi(endpoint, "/metrics"))[1].count(b"slotqueue_redis_up{") == 1
        assert (await ask_asgi(endpoint, "/metrics", "HEAD"))[1] == b""
        assert (await ask_asgi(endpoint, "/metrics", "POST"))[0] == 405
        assert (await ask_asgi(endpoint, "/else"))[0] == 404
        replica = slots._life._replica
        assert replica is not None
        monkeypatch.setattr(replica.ticker, "ticked_at", replica.clock.monotonic() - 11)
        monkeypatch.setattr(replica.ticker, "tick", asyncio.Event().wait)
        assert endpoint.probe("/readyz").status == 503
        assert endpoint.probe("/livez").status == 200  # Redis may be away: a restart would mend nothing
        monkeypatch.setattr(replica.ticker, "turned_at", replica.clock.monotonic() - 61)
        assert endpoint.probe("/livez").status == 503


async def test_without_the_extra_metrics_say_how_to_have_some(slots: SlotQueue) -> None:
    status, body = await ask_asgi(Endpoint(slots), "/metrics")
    assert (status, body) == (501, b"no metrics: pip install 'slotqueue[metrics]'\n")


async def test_a_blocked_event_loop_is_seen_from_the_thread(slots: SlotQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    await slots.start()
    await eventually(lambda: slots.is_ready)
    server = Server(Endpoint(slots), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.port}/livez"
    replica = slots._life._replica
    assert replica is not None
    try:
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(_status, url).result() == 200  # the loop stands still until the answer is there
            monkeypatch.setattr(replica.ticker, "turned_at", replica.clock.monotonic() - 61)
            assert thread.submit(_status, url).result() == 503
    finally:
        await asyncio.to_thread(server.close)
        await slots.stop()


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(
    "text, place",
    [
        ("127.0.0.1:9100", ("127.0.0.1", 9100)),
        (":9100", ("0.0.0.0", 9100)),
        ("9100", ("0.0.0.0", 9100)),
        ("[::1]:1", ("::1", 1)),
    ],
)
def test_where_to_listen_is_read(text: str, place: tuple[str, int]) -> None:
    assert address(text) == place


def test_run_serves_and_health_asks(
    slotqueue: Slotqueue, start: Start, write_app: Callable[..., None], redis_url: str, stage: Stage
) -> None:
    write_app('slots.add("rollup", Every(hours=1))\n', redis_url)
    running = start("run", "app:slots", "--http", "127.0.0.1:0")
    running.wait_for("ready: ")
    place = running.out.partition("http://")[2].partition("/")[0]
    with urllib.request.urlopen(f"http://{place}/metrics", timeout=10) as answer:
        assert value(parsed(answer.read()), "slotqueue_jobs") == 1
    for args in (["--http", place], ["--http", place, "--live"], ["--redis", redis_url], ["app:slots", "--host", ""]):
        result = slotqueue("health", *args)
        assert result.exit_code == 0, result.output
    assert slotqueue("health", "--http", place).stdout.startswith("readyz: ok, its last pass ended well ")
    taken = slotqueue("run", "app:slots", "--http", place)
    assert taken.exit_code == 2
    assert "cannot listen at 127.0.0.1:" in taken.stderr
    assert running.stop(signal.SIGTERM)[0] == 0
    result = slotqueue("health", "--http", place)
    assert (result.exit_code, "does not answer" in result.stdout) == (1, True)


def test_health_by_the_registry(slotqueue: Slotqueue, stage: Stage, redis_url: str) -> None:
    result = slotqueue("health", "--redis", redis_url, "--worker")
    assert result.exit_code == 1
    assert "no guarded worker of " in result.stdout
    stage.guard(hourly_job())
    assert slotqueue("health", "--redis", redis_url, "--worker", "--host", "").exit_code == 0
    stage.redis.hset("ran:replicas", "r1", f"{stage.now() - HOUR} {{}}")
    result = slotqueue("health", "--redis", redis_url, "--host", "")
    assert (result.exit_code, result.stdout.startswith("r1 is silent since ")) == (1, True)
    assert slotqueue("health", "--redis", "redis://127.0.0.1:1/0").exit_code == 3
    assert slotqueue("health", "--live").exit_code == 2
    assert "one looks like 127.0.0.1:9100" in slotqueue("health", "--http", "nowhere").stderr
