"""What more replicas cost: the same slots under 1 to 50 replicas, each a `slotqueue run` in a process of its own.

Nothing observes the queue meanwhile: what is sent, received and spent is slotqueue's, but for a question each 20 ms.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

import redis

from benchmarks.counters import Counters, counters
from benchmarks.peers.burst import instant
from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Load, Message, Place, When
from benchmarks.peers.replicas import Run, unobserved
from benchmarks.peers.replicas import run as started
from benchmarks.peers.slotqueue_peer import PEER, read
from benchmarks.report import Figure
from benchmarks.stage import application, enlist_worker
from slotqueue.slots import key_at

REPLICAS = (1, 3, 10, 50)
SECONDS, WATCHED_S = 10, 5
BURST, LARGE = 2_000, 10_000
_READY_WITHIN_S, _CAP_S = 300, 60
_MOST_PATIENCE = 32
_SETTLE_S = _BEFORE_S = _QUIET_S = 1.5
_ACQUAINTED_S = 12
"""A replica learns who else is there, and so its share of a burst, with its own sign of life, each 10 s."""
_ENQUEUED = re.compile(r" INFO (ran:\S+) enqueued, number \d+$")


class NotReady(Exception):
    """Not all replicas had made their first pass before the instant."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What so many slots cost under so many replicas, all replicas together.

    Args:
        took: seconds that all of this was counted for; what waiting costs is in it.
        spent: by Redis.
        cpu: seconds, by the replicas.
        winners: of the replicas, those that enqueued at least one of the slots.
        missing: slots that are not in the queue.
        twice: messages beyond one a slot, by what the replicas logged.
        last: of a burst: seconds from its instant until all were in the queue, to 20 ms; None if not within a minute.
        split: of a job a second: commands a slot by the replica that won it, and by each other one; None where
            there is no other.
    """

    replicas: int
    slots: int
    took: float
    spent: Counters
    cpu: float
    winners: int
    missing: int
    twice: int
    last: float | None = None
    split: tuple[float, float | None] | None = None

    @property
    def sent(self) -> float:
        """Commands that a replica sends for a slot."""
        return self.spent.scripts / self.slots / self.replicas

    def figures(self) -> Iterator[Figure]:
        """For people to read."""
        what = f"{self.slots:,} at once" if self.split is None else "one a second"
        head = f"{what}, {self.replicas} replica{'s' * (self.replicas > 1)}"
        yield Figure(f"{head}: commands sent, all replicas", self.spent.scripts, "")
        yield Figure(f"{head}: ... a slot and replica", self.sent, "")
        if self.split:
            won, lost = self.split
            yield Figure(f"{head}: ... a slot, by its winner", won, "")
            if lost is not None:
                yield Figure(f"{head}: ... a slot, by each other", lost, "")
        yield Figure(f"{head}: bytes to Redis, a slot", self.spent.received / self.slots, "bytes")
        yield Figure(f"{head}: Redis's CPU, a slot", self.spent.seconds / self.slots * 1e6, "us")
        yield Figure(f"{head}: CPU of all replicas, a slot", self.cpu / self.slots * 1e6, "us")
        if self.last is not None:
            yield Figure(f"{head}: last in the queue", self.last, "s")
        yield Figure(f"{head}: all of this counted for", self.took, "s")
        yield Figure(f"{head}: replicas that won some", self.winners, "")
        yield Figure(f"{head}: missing", self.missing, "", 0)
        yield Figure(f"{head}: twice", self.twice, "", 0)


def run() -> Iterator[Figure]:
    """A job a second, and a burst. Commands: calls of EVALSHA, all that a replica sends once it has started."""
    for count in REPLICAS:
        yield from second(count).figures()
    for count in REPLICAS:
        yield from burst(count, BURST).figures()


def second(replicas: int) -> Cost:
    """A job a second for ten; then five more under MONITOR, to tell what a slot's winner sends from what others do."""
    with _running("second", 1, int(time.time())) as running:
        running.start(replicas)
        _wait_until_ready(running, time.monotonic() + _READY_WITHIN_S)
        time.sleep(_SETTLE_S)
        first = _half_a_second_before()
        began = _now(running)
        _half_a_second_before(first + SECONDS)
        took, spent, cpu = _spent(running, began)
        end = _half_a_second_before() + WATCHED_S
        with watching(_scripts_and_messages, mark='"')(running.place) as monitor:
            _half_a_second_before(end)
            seen = monitor.messages()
        expected = {_key("job-0", at) for at in range(first, end)}
        winners, missing, twice = _checked(running, expected)
        ours = split(seen, running.holders(), replicas)
    return Cost(replicas, SECONDS, took, spent, cpu, winners, missing, twice, split=ours)


def burst(replicas: int, jobs: int) -> Cost:
    """So many jobs at one instant: from a second and a half before it until as long after the last is in the queue.

    By then all replicas know of each other.
    """
    patience = 1
    while True:
        ready_in = (5 + replicas * (0.7 + jobs / 10_000)) * patience
        try:
            return _burst(replicas, jobs, instant(ready_in + _ACQUAINTED_S, whole_minutes=False))
        except NotReady:
            if patience >= _MOST_PATIENCE:
                raise
            patience *= 2


def _burst(replicas: int, jobs: int, at: int) -> Cost:
    with _running("burst", jobs, at) as running, redis.Redis.from_url(running.place.url) as client:

        def is_full(_: Sequence[Message]) -> bool:
            return bool(client.zcard("arq:queue") == jobs)

        running.start(replicas)
        _wait_until_ready(running, time.monotonic() + at - time.time() - _BEFORE_S - _ACQUAINTED_S)
        running.wait(at - time.time() - _BEFORE_S)
        began = _now(running)
        running.wait(at - time.time())
        last = time.time() - at if running.wait(_CAP_S, is_full) else None
        running.wait(_QUIET_S)
        took, spent, cpu = _spent(running, began)
        winners, missing, twice = _checked(running, {_key(f"job-{number}", at) for number in range(jobs)})
    return Cost(replicas, jobs, took, spent, cpu, winners, missing, twice, last)


def split(seen: Sequence[Message], holders: Mapping[int, int], replicas: int) -> tuple[float, float | None]:
    """Scripts a slot: by the replica that enqueued it, by each other.

    Args:
        seen: scripts, with an empty job, and messages, as MONITOR showed them. A slot's scripts are those from half a
            second before it on.
        holders: by the port of a connection, the number of its replica.
    """
    scripts: dict[int, Counter[int]] = defaultdict(Counter)
    won: dict[int, int] = {}
    for each in seen:
        slot, replica = math.floor(each.at + 0.5), holders.get(each.port, -1)
        if each.job:
            won[slot] = replica
        else:
            scripts[slot][replica] += 1
    mine = [scripts[slot][replica] for slot, replica in won.items()]
    others = [scripts[slot].total() - scripts[slot][replica] for slot, replica in won.items()]
    return fmean(mine), fmean(others) / (replicas - 1) if replicas > 1 else None


def _scripts_and_messages(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    if command[0].upper() == "EVALSHA":
        yield "", None
    else:
        yield from read(command)


@contextmanager
def _running(schedule: When, jobs: int, at: int) -> Iterator[Run]:
    """slotqueue of this environment in front of arq, its tasks guarded, none started yet."""
    peer = replace(PEER, prepare=_enlist)
    with started(peer, Path(sys.executable).parent, jobs, schedule, at=at, observe=unobserved) as running:
        yield running


def _enlist(place: Place, _: Load) -> None:
    async def enlist() -> None:
        async with application(place.url, 0) as slots:
            await enlist_worker(slots)

    asyncio.run(enlist())


def _wait_until_ready(running: Run, deadline: float) -> None:
    waiting = set(range(len(running.processes)))
    while waiting:
        if time.monotonic() > deadline:
            raise NotReady(f"{len(waiting)} of {len(running.processes)} replicas were not ready")
        running.wait(0.2)
        waiting -= {number for number in waiting if any(line.startswith("ready:") for line in running.said(number))}


def _half_a_second_before(slot: int | None = None) -> int:
    """Wait until half a second before a slot, the next by default; which."""
    slot = math.floor(time.time() + 0.5) + 1 if slot is None else slot
    time.sleep(max(0.0, slot - 0.5 - time.time()))
    return slot


Spent = tuple[float, Counters, float]
"""Seconds, what Redis counts, CPU seconds of the replicas."""


def _now(running: Run) -> Spent:
    # The server first: asking for fifty processes takes a while.
    return time.monotonic(), counters(int(running.place.url.rpartition(":")[2].partition("/")[0])), running.usage()[0]


def _spent(running: Run, began: Spent) -> Spent:
    at, counted, cpu = _now(running)
    return at - began[0], counted.since(began[1]), cpu - began[2]


def _key(job: str, at: int) -> str:
    return key_at("ran", job, datetime.fromtimestamp(at, UTC))


def _checked(running: Run, expected: set[str]) -> tuple[int, int, int]:
    """How many replicas enqueued some of these slots; how many of them are missing, and came twice."""
    with redis.Redis.from_url(running.place.url, decode_responses=True) as client:
        queued = set(client.zrange("arq:queue", 0, -1))
    logged = [
        [found[1] for line in running.said(number) if (found := _ENQUEUED.search(line)) and found[1] in expected]
        for number in range(len(running.processes))
    ]
    times = Counter(key for keys in logged for key in keys)
    return sum(map(bool, logged)), len(expected - queued), times.total() - len(times)
