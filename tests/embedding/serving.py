"""A real server on a free port, and the replicas that its processes are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

from tests.servers import free_port
from tests.stopwatch import Stopwatch
from tests.waiting import wait_until

BIN = Path(sys.executable).parent


class Serving:
    """A started server; its log is a file.

    Args:
        command: without its program's folder; "{port}" is replaced.
        folder: where the application is.
        redis_url: the application's Redis.
    """

    def __init__(self, command: Sequence[str], folder: Path, redis_url: str) -> None:
        self.port = free_port()
        self.redis: Any = redis.Redis.from_url(redis_url, decode_responses=True)
        self._log = folder / "server.log"
        program, *words = [word.format(port=self.port) for word in command]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(folder)}
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(BIN / program), *words],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def pids(self) -> set[int]:
        """The processes that are registered as replicas."""
        return {int(replica.split("-")[-2]) for replica in self.redis.hkeys("ran:replicas")}

    def has_replicas(self, count: int) -> set[int]:
        """Wait until so many processes tick."""
        found: set[int] = wait_until(lambda: len(pids := self.pids()) == count and pids, why=self.text)
        return found

    def slots(self, job: str) -> list[dict[str, str]]:
        """The records of a job's slots, oldest first."""
        keys = [f"ran:{job}:{tail}:record" for tail in self.redis.zrange(f"ran:{job}:slots", 0, -1)]
        return [self.redis.hgetall(key) for key in keys]

    def has_done(self, job: str, count: int) -> list[dict[str, str]]:
        """Wait until so many slots of a job are done."""

        def done() -> list[dict[str, str]]:
            found = [slot for slot in self.slots(job) if slot.get("state") == "done"]
            return found if len(found) >= count else []

        found: list[dict[str, str]] = wait_until(done, why=self.text)
        return found

    def get(self, path: str) -> int:
        """Ask, and return the status; 0 while nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                status: int = answer.status
                return status
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def answers(self, path: str, status: int) -> None:
        wait_until(lambda: self.get(path) == status, why=self.text)

    def terminate(self) -> float:
        """Ask for an orderly end; returns how many seconds of a `Stopwatch` it took."""
        with Stopwatch(self.process.pid) as watch:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
        return watch.seconds

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        self.redis.close()
        print(self.text())
