"""Ten thousand jobs of which none is due: how long until the replica is ready, and what it costs to wait."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Figure
from benchmarks.stage import idle_application
from tests.servers import Server

JOBS = 10_000
SECONDS = 30
_EMPTY = "import time; print(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])"


def run() -> Iterator[Figure]:
    """A replica of its own process; the empty process is the same Python without any import of ours."""
    empty = int(subprocess.run([sys.executable, "-c", _EMPTY], capture_output=True, text=True, check=True).stdout)
    with Server() as server:
        command = [sys.executable, "-m", "benchmarks.idle", server.url]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    yield Figure("10,000 idle jobs: from the first add to ready", found["ready"], "s", 2)
    yield Figure("10,000 idle jobs: share of a core", found["cpu"] * 100, "%", 0.5)
    yield Figure("10,000 idle jobs: memory over an empty process", (found["rss_kb"] - empty) / 1024, "MB", 60)


async def _replica(url: str) -> None:
    began = time.perf_counter()
    slots = idle_application(url, JOBS)
    async with slots:
        while not slots.is_ready:  # noqa: ASYNC110 - readiness is a property, for probes
            await asyncio.sleep(0.005)
        ready = time.perf_counter() - began
        await asyncio.sleep(1)
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.sleep(SECONDS)
        share = (time.process_time() - cpu) / (time.perf_counter() - wall)
        print(json.dumps({"ready": ready, "cpu": share, "rss_kb": _resident_kb()}))


def _resident_kb() -> int:
    return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmRSS:")[1].split()[0])


if __name__ == "__main__":
    asyncio.run(_replica(sys.argv[1]))
