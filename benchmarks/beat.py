"""Beats side by side: slotqueue's, Celery's own and redbeat's; needs an environment with Celery and celery-redbeat."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import redis

from benchmarks import guard
from benchmarks.report import Figure, percentile
from slotqueue.slots import parse_key
from tests.servers import Server

RedisClient = Any  # redis-py types its answers for async code as well
SYSTEMS = {
    "slotqueue": "slotqueue.beat.SlotScheduler",
    "celery beat": "celery.beat.PersistentScheduler",
    "redbeat": "redbeat.RedBeatScheduler",
}
SECONDS = 20
ENTRIES, MANY, PERIOD = 2_000, 10_000, 10
LOCK_SECONDS = 20
"""Redbeat's default is 1500 s; the gap after a SIGKILL is as long as this."""
_QUIET_SECONDS = 2.0


def run() -> Iterator[Figure]:
    """Lateness of a one-second entry, a wave of 2,000 entries, the gap after a SIGKILL of the beat that sent last;
    and what the guard costs a worker."""
    with Server() as server:
        for system in SYSTEMS:
            yield from _lateness(server.url, system)
        for system in SYSTEMS:
            yield from _wave(server, system, ENTRIES)
        yield from _wave(server, "slotqueue", MANY)
        for system in ("slotqueue", "redbeat"):
            yield from _gap(server.url, system)
    yield from guard.run()


def _lateness(url: str, system: str) -> Iterator[Figure]:
    with _beats(url, system, "late", every=1), _client(url) as client:
        arrivals = [(key, at) for key, at in _arrivals(client, "late", SECONDS + 3)][2:]
    if system == "slotqueue":
        late = [(at - parse_key(key).fire_time.timestamp()) * 1000 for key, at in arrivals]
        yield Figure("slotqueue: message behind its instant, p50", percentile(late, 0.5), "ms", 3)
        yield Figure("slotqueue: message behind its instant, p99", percentile(late, 0.99), "ms", 15)
        yield Figure("slotqueue: message behind its instant, worst", max(late), "ms")
    else:
        gaps = [(later - earlier - 1) * 1000 for (_, earlier), (_, later) in pairwise(arrivals)]
        yield Figure(f"{system}: message behind the last one and a second, p50", percentile(gaps, 0.5), "ms")
        yield Figure(f"{system}: message behind the last one and a second, p99", percentile(gaps, 0.99), "ms")


def _wave(server: Server, system: str, count: int) -> Iterator[Figure]:
    server.flush()
    with _beats(server.url, system, "wave", every=PERIOD, count=count), _client(server.url) as client:
        bursts = _bursts(client, "wave", count, waves=3)
    if len(bursts) < 2:
        yield Figure(f"{system}: {count} entries every {PERIOD} s are too many: waves without a pause", len(bursts), "")
        return
    yield Figure(f"{system}: entries of {count} in the first wave", bursts[0][2], "")
    took = min(end - start for start, end, _ in bursts[1:])
    yield Figure(f"{system}: a wave of {count}, first to last message", took, "s")
    yield Figure(f"{system}: ... an entry", took / count * 1e6, "us")


def _gap(url: str, system: str) -> Iterator[Figure]:
    """Two beats; the one that sent last is killed."""
    with _beats(url, system, "gap", every=1, beats=2) as processes, _client(url) as client:
        last, _ = list(_arrivals(client, "gap", 8))[-1]
        victim = _sender(client, system, last, processes)
        victim.send_signal(signal.SIGKILL)
        at = time.time()
        following = [at, *(arrived for _, arrived in _arrivals(client, "gap", LOCK_SECONDS + 12))]
    longest = max(later - earlier for earlier, later in pairwise(following))
    note = "" if system == "slotqueue" else f" (lock timeout {LOCK_SECONDS} s; default 1500 s)"
    yield Figure(
        f"{system}: longest silence after a SIGKILL{note}", longest, "s", 1.1 if system == "slotqueue" else None
    )


def _sender(
    client: RedisClient, system: str, key: str, processes: list[subprocess.Popen[bytes]]
) -> subprocess.Popen[bytes]:
    if system == "slotqueue":
        replica = str(client.get(key))
        return next(each for each in processes if f"-{each.pid}-" in replica)
    return processes[0]  # it was started first, and holds the lock


@contextmanager
def _client(url: str) -> Iterator[RedisClient]:
    client: RedisClient = redis.Redis.from_url(url, decode_responses=True, socket_timeout=30)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def _beats(
    url: str, system: str, queue: str, *, every: int, count: int = 1, beats: int = 1
) -> Iterator[list[subprocess.Popen[bytes]]]:
    said = {"url": url, "queue": queue, "every": every, "count": count, "lock_timeout": LOCK_SECONDS}
    environment = {**os.environ, "BENCH_BEAT": json.dumps(said)}
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder, _client(url) as client:
        client.flushall()
        for i in range(beats):
            command = [sys.executable, "-m", "celery", "-A", "benchmarks.beat_app", "beat", "-S", SYSTEMS[system]]
            command += ["-s", f"{folder}/schedule-{i}", "-l", "ERROR"]
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
            time.sleep(2)
        try:
            yield processes
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _arrivals(client: RedisClient, queue: str, seconds: float) -> Iterator[tuple[str, float]]:
    """Take messages as they come: id and host time."""
    until = time.time() + seconds
    while time.time() < until:
        found = client.brpop([queue], timeout=1)
        at = time.time()
        if found and at < until:
            yield json.loads(found[1])["headers"]["id"], at


def _bursts(client: RedisClient, queue: str, count: int, *, waves: int) -> list[tuple[float, float, int]]:
    """Watch the queue grow: when each wave began and ended, and its messages.

    A wave ends with the last of its entries, or with two seconds of silence.
    """
    bursts: list[tuple[float, float, int]] = []
    seen, began, grown, first = 0, 0.0, 0.0, 0
    until = time.time() + PERIOD * (waves + 3)
    while len(bursts) < waves and time.time() < until:
        length, now = int(client.llen(queue)), time.time()
        if length > seen:
            if not began:
                began, first = now, seen
            seen, grown = length, now
        if began and (seen - first >= count or now - grown > _QUIET_SECONDS):
            bursts.append((began, grown, seen - first))
            began = 0.0
        time.sleep(0.002)
    return bursts
