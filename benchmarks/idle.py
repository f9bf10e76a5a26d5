"""From a hundred to a hundred thousand jobs, none due: how soon a replica is ready, and what waiting costs it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.counters import counters
from benchmarks.report import Figure, percentile
from benchmarks.stage import idle_application
from slotqueue import Every
from slotqueue.events import SlotClaimed
from tests.servers import Server

LISTS: dict[int, tuple[float | None, float | None, float | None]] = {
    100: (None, None, None),
    1_000: (None, None, None),
    10_000: (2, 0.5, 60),
    100_000: (20, 1, None),
}
"""Jobs -> at most: seconds until ready, percent of a core, MB."""
SECONDS = 30
_EMPTY = "import time; print(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])"


def run() -> Iterator[Figure]:
    """A replica of its own process; the empty process is the same Python without any import of ours."""
    for jobs, (ready, share, memory) in LISTS.items():
        found = measure(jobs)
        for name, unit, most in (
            ("from the first add to ready", "s", ready),
            ("share of a core", "%", share),
            ("memory over an empty process", "MB", memory),
            ("commands sent to Redis", "a second", None),
            ("one more in the middle of them, p99", "ms behind its instant", 10),
            ("with that one, share of a core", "%", None),
            ("with that one, commands sent to Redis", "a second", None),
        ):
            yield Figure(f"{jobs:,} idle jobs: {name}", found[name], unit, most)


def measure(jobs: int) -> dict[str, float]:
    """The figures of `run`, by their names."""
    empty = int(subprocess.run([sys.executable, "-c", _EMPTY], capture_output=True, text=True, check=True).stdout)
    with Server() as server:
        command = [sys.executable, "-m", "benchmarks.idle", server.url, str(jobs)]
        said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {**said["figures"], "memory over an empty process": (said["rss_kb"] - empty) / 1024}


async def _replica(url: str, jobs: int) -> None:
    began = time.perf_counter()
    late: list[int] = []
    slots = idle_application(
        url, jobs, on_event=lambda event: late.append(event.late_ms) if isinstance(event, SlotClaimed) else None
    )
    async with slots:
        while not slots.is_ready:  # noqa: ASYNC110 - readiness is a property, for probes
            await asyncio.sleep(0.005)
        ready = time.perf_counter() - began
        await asyncio.sleep(1)
        port = urlsplit(url).port or 6379
        share, sent = await _pass(port)
        size = _resident_kb()
        slots.add("each-second", Every(seconds=1), task="work")
        more, sent_then = await _pass(port)
    figures = {
        "from the first add to ready": ready,
        "share of a core": share,
        "commands sent to Redis": sent,
        "one more in the middle of them, p99": percentile(late, 0.99),
        "with that one, share of a core": more,
        "with that one, commands sent to Redis": sent_then,
    }
    print(json.dumps({"figures": figures, "rss_kb": size}))


async def _pass(port: int) -> tuple[float, float]:
    """Let some time pass: percent of a core, and commands a second."""
    before, cpu, wall = counters(port), time.process_time(), time.perf_counter()
    await asyncio.sleep(SECONDS)
    took = time.perf_counter() - wall
    share = (time.process_time() - cpu) / took * 100
    return share, counters(port).since(before).scripts / took


def _resident_kb() -> int:
    return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmRSS:")[1].split()[0])


if __name__ == "__main__":
    asyncio.run(_replica(sys.argv[1], int(sys.argv[2])))
