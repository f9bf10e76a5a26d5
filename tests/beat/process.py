"""Real beats and workers as processes, and what they left in Redis."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import redis

from slotqueue.slots import parse_key
from tests.forked import ForkedCelery
from tests.stopwatch import Stopwatch

_ROOT = Path(__file__).parents[2]
BEAT = ("beat", "-S", "slotqueue.beat.SlotScheduler", "-l", "INFO")
WORKER = ("worker", "-l", "INFO", "-c", "2", "--without-mingle", "--without-gossip")


def eventually(holds: Callable[[], object], *, within: float = 40.0, what: str = "it") -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, f"{what} did not come within {within} s"
        time.sleep(0.02)


class CeleryProcess:
    """`celery -A tests.beat.beat_app ARGS` in a folder of its own."""

    def __init__(self, args: tuple[str, ...], said: dict[str, Any], folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._log = folder.with_suffix(".log")
        environment = {**os.environ, "TEST_BEAT": json.dumps(said), "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"}
        self._process = ForkedCelery(["-A", "tests.beat.beat_app", *args], folder, environment, self._log)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_for(self, text: str, within: float = 50.0) -> None:
        eventually(lambda: text in self.log or not self.is_alive, within=within, what=repr(text))
        assert text in self.log, self.log

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to the whole group: nobody says goodbye."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def stop(self, number: int = signal.SIGTERM, within: float = 40.0) -> tuple[int, float]:
        """Ask for an orderly end; the exit code and the seconds of a `Stopwatch` that it took."""
        with Stopwatch(self.pid) as watch:
            self.send(number)
            code = self._process.wait(within)
        return code, watch.seconds

    def close(self) -> None:
        if self.is_alive:
            self.kill()


class Fleet:
    """Starts beats and workers of one application against one server, and reads what they did."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.redis: Any = redis.Redis.from_url(url, decode_responses=True)
        self._folder = folder
        self.processes: list[CeleryProcess] = []

    def start(
        self,
        args: tuple[str, ...] = BEAT,
        *,
        entries: dict[str, Any] | None = None,
        lazy: bool = False,
        stalls: bool = False,
        guarded: bool = False,
        ticking_workers: bool = False,
        ticking_slots: dict[str, dict[str, Any]] | None = None,
        **conf: Any,
    ) -> CeleryProcess:
        said = {
            "url": self.url,
            "entries": entries if entries is not None else {"each second": {"task": "work", "schedule": 1}},
            "lazy": lazy,
            "stalls": stalls,
            "guarded": guarded,
            "ticking_workers": ticking_workers,
            "ticking_slots": ticking_slots,
            "conf": conf,
        }
        process = CeleryProcess(args, said, self._folder / f"{args[0]}-{len(self.processes)}")
        self.processes.append(process)
        return process

    def beats(self, count: int, **said: Any) -> list[CeleryProcess]:
        """Start beats and wait until each of them ticks."""
        beats = [self.start(**said) for _ in range(count)]
        for beat in beats:
            beat.wait_for(" ticks")
        return beats

    def messages(self, queue: str = "celery") -> list[dict[str, Any]]:
        """The messages in a queue of the broker, oldest first."""
        return [json.loads(each) for each in reversed(self.redis.lrange(queue, 0, -1))]

    def sent(self) -> Counter[str]:
        """How many messages each slot has."""
        return Counter(each["headers"]["id"] for each in self.messages())

    def record(self, key: str) -> dict[str, str]:
        """What the store says of a slot."""
        return dict(self.redis.hgetall(f"{key}:record"))

    def open_slots(self) -> list[str]:
        """The keys of the slots that have not ended."""
        keys: list[str] = self.redis.zrange("ran:open", 0, -1)
        return keys

    def lateness_ms(self, key: str) -> float:
        """How long after the fire time the message was confirmed, by Redis's clock."""
        return int(self.record(key)["queued"]) - parse_key(key).fire_time.timestamp() * 1000

    def now(self) -> float:
        """Redis's time."""
        seconds, microseconds = self.redis.time()
        return float(seconds) + float(microseconds) / 1e6

    def close(self) -> None:
        for process in self.processes:
            process.close()
        self.redis.close()


def fire_time(key: str) -> datetime:
    return parse_key(key).fire_time
