"""A fleet of real processes: replicas and arq workers of one application, and what became of its slots."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

from tests.fleet.deaths import STRUCK
from tests.fleet.orders import GO, VARIABLE, Orders
from tests.waiting import eventually

_ROOT = Path(__file__).parents[2]
_APPLICATION = "tests.fleet.application"


class Child:
    """One process of a fleet."""

    def __init__(self, orders: Orders, command: Sequence[str], folder: Path, ready_word: str) -> None:
        self.name = orders.name
        self._ready_word = ready_word
        self._log = folder / f"{orders.name}.log"
        environment = {
            **os.environ,
            VARIABLE: orders.to_json(),
            "PYTHONPATH": str(_ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=_ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def events(self, *names: str, key: str | None = None) -> list[dict[str, Any]]:
        """The events of these names that it has told so far, all where none is named; of one slot or of any."""
        whole = self.text().rpartition("\n")[0].splitlines()
        told = [json.loads(line[1:]) for line in whole if line.startswith("@")]
        return [each for each in told if (not names or each["event"] in names) and key in (None, each.get("key"))]

    async def told(self, name: str, *, count: int = 1, within: float = 40.0) -> None:
        """Wait until it has told an event so often."""
        await eventually(lambda: len(self.events(name)) >= count or not self.is_alive, within=within, why=name)
        assert len(self.events(name)) >= count, self.text()

    async def ready(self, within: float = 50.0) -> None:
        """Wait until it ticks or, a worker, is enlisted; until it listens where it is not guarded."""
        await eventually(
            lambda: self._ready_word in self.text() or not self.is_alive, within=within, why=f"{self.name} is ready"
        )
        assert self._ready_word in self.text(), self.text()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def ended(self, within: float = 40.0) -> int:
        """Wait until it is gone, and return its exit code: negative for a signal."""
        await eventually(lambda: not self.is_alive, within=within, why=f"{self.name} ends")
        assert self.exit_code is not None
        return self.exit_code

    def close(self) -> None:
        if self.is_alive:
            self.thaw()
            self.kill()


class Fleet:
    """Processes over one Redis.

    Args:
        url: the server, for the test and for the runs that functions count.
        folder: for logs.
        defaults: of the orders of every process.
    """

    def __init__(self, url: str, folder: Path, **defaults: Any) -> None:
        self.url = url
        self.namespace: str = defaults.get("namespace", "ran")
        self.redis: Any = redis.Redis.from_url(url, decode_responses=True, socket_timeout=5)
        self.children: list[Child] = []
        self._defaults = {"url": url, **defaults}
        self._folder = folder

    # ---- processes

    def replica(self, name: str, **orders: Any) -> Child:
        """Start a replica; returns at once."""
        return self._start(name, [sys.executable, "-m", _APPLICATION], orders, "ReplicaStarted")

    def worker(self, name: str = "worker", **orders: Any) -> Child:
        """Start a worker by arq's own command line; returns at once."""
        is_guarded = {**self._defaults, **orders}.get("is_guarded", True)
        command = [sys.executable, "-m", "arq", f"{_APPLICATION}.WorkerSettings"]
        return self._start(name, command, orders, "WorkerEnlisted" if is_guarded else "redis_version")

    async def replicas(self, count: int, **orders: Any) -> list[Child]:
        """Start replicas and wait until they tick."""
        found = [self.replica(f"replica-{i + 1}", **orders) for i in range(count)]
        await self.are_ready(*found)
        return found

    async def workers(self, count: int, **orders: Any) -> list[Child]:
        """Start workers and wait until they are there."""
        found = [self.worker(f"worker-{i + 1}", **orders) for i in range(count)]
        await self.are_ready(*found)
        return found

    async def are_ready(self, *children: Child) -> None:
        """Wait until each is: see `Child.ready`."""

        for child in children:
            await child.ready()

    def close(self) -> None:
        for child in self.children:
            child.close()
        self.redis.close()

    def logs(self) -> str:
        return "\n".join(f"--- {child.name}\n{child.text()}" for child in self.children)

    def events(self, *names: str, key: str | None = None) -> list[dict[str, Any]]:
        return [event for child in self.children for event in child.events(*names, key=key)]

    # ---- slots

    def now(self) -> float:
        """Redis's time, seconds."""
        seconds, micros = self.redis.time()
        now: float = seconds + micros / 1e6
        return now

    async def passes(self, at: float) -> None:
        """Wait until Redis's time is past `at`, seconds."""
        await eventually(lambda: self.now() > at, within=max(0.0, at - self.now()) + 5, pause=0.01)

    async def next_second(self) -> None:
        """Wait until another slot of a job that fires each second is due."""
        await self.passes(int(self.now()) + 1.01)

    def keys(self, job: str) -> list[str]:
        """The slots of a job that are on record, oldest first."""
        tails = self.redis.zrange(f"{self.namespace}:{job}:slots", 0, -1)
        return [f"{self.namespace}:{job}:{tail}" for tail in tails]

    def record(self, key: str) -> dict[str, str]:
        found: dict[str, str] = self.redis.hgetall(f"{key}:record")
        return found

    def state(self, key: str) -> str | None:
        return self.record(key).get("state")

    def states(self, job: str) -> list[str | None]:
        return [self.state(key) for key in self.keys(job)]

    def past(self, key: str) -> list[str]:
        record = self.record(key)
        found = sorted((int(name[5:]), text) for name, text in record.items() if name.startswith("past."))
        return [text.split(" ", 1)[1] for _, text in found]

    async def reaches(self, key: str, *states: str, within: float = 40.0) -> dict[str, str]:
        """Wait until a slot is in one of these states, and return its record."""
        try:
            await eventually(lambda: self.state(key) in states, within=within)
        except AssertionError:
            raise AssertionError(f"{key} never {states}: {self.record(key)}, runs {self.marks(key)}") from None
        return self.record(key)

    async def has_slots(self, job: str, count: int, *, state: str = "done", within: float = 50.0) -> list[str]:
        """Wait until so many slots of a job are in this state; returns all of its slots."""
        try:
            await eventually(lambda: self.states(job).count(state) >= count, within=within)
        except AssertionError:
            raise AssertionError(f"not {count} {state}: {self.states(job)}") from None
        return self.keys(job)

    def marks(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.redis.lrange(f"effects:{key}", 0, -1)]

    def runs(self, key: str) -> int:
        """How often the function of a slot was started, counted by the function itself."""
        return sum(mark["what"] == "ran" for mark in self.marks(key))

    async def struck(self, job: str, within: float = 40.0) -> str:
        """Wait until a doomed process has died; the slot at which it did."""
        key: str = await eventually(lambda: self.redis.hget(STRUCK, job), within=within, why=f"a death at {job}")
        return key

    # ---- moving time

    def let_go(self) -> None:
        """Let slow functions and held enqueues end, those to come as well."""
        self.redis.set(GO, 1)

    def let_deadline_pass(self, key: str) -> None:
        """Make an open slot overdue: some deadlines are minutes away."""
        assert self.redis.zadd(f"{self.namespace}:open", {key: 1}, xx=True, ch=True)

    def let_arq_notice(self, key: str) -> None:
        """Let arq's in-progress key, left by a killed worker, run out: it would live for 30 s and more."""
        assert self.redis.pexpire(f"arq:in-progress:{key}", 1)

    def _start(self, name: str, command: Sequence[str], orders: dict[str, Any], ready_word: str) -> Child:
        whole = Orders(name=name, **{"effects_url": self.url, **self._defaults, **orders})
        child = Child(whole, command, self._folder, ready_word)
        self.children.append(child)
        return child
