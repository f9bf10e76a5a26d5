"""Ten and a hundred thousand jobs of which none is due: how long until the replica is ready, and what waiting costs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Figure, percentile
from benchmarks.stage import idle_application
from slotqueue import Every
from slotqueue.events import SlotClaimed
from tests.servers import Server

LISTS = {10_000: (2, 0.5, 60), 100_000: (20, 1, None)}
"""Jobs -> at most: seconds until ready, percent of a core, MB."""
SECONDS = 30
_EMPTY = "import time; print(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])"


def run() -> Iterator[Figure]:
    """A replica of its own process; the empty process is the same Python without any import of ours."""
    empty = int(subprocess.run([sys.executable, "-c", _EMPTY], capture_output=True, text=True, check=True).stdout)
    for jobs, (ready, share, memory) in LISTS.items():
        with Server() as server:
            command = [sys.executable, "-m", "benchmarks.idle", server.url, str(jobs)]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        yield Figure(f"{jobs:,} idle jobs: from the first add to ready", found["ready"], "s", ready)
        yield Figure(f"{jobs:,} idle jobs: share of a core", found["cpu"] * 100, "%", share)
        yield Figure(
            f"{jobs:,} idle jobs: memory over an empty process", (found["rss_kb"] - empty) / 1024, "MB", memory
        )
        yield Figure(
            f"{jobs:,} idle jobs: one more in the middle of them, p99", found["late"], "ms behind its instant", 10
        )


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
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.sleep(SECONDS)
        share = (time.process_time() - cpu) / (time.perf_counter() - wall)
        size = _resident_kb()
        slots.add("each-second", Every(seconds=1), task="work")
        await asyncio.sleep(SECONDS)
        print(json.dumps({"ready": ready, "cpu": share, "rss_kb": size, "late": percentile(late, 0.99)}))


def _resident_kb() -> int:
    return int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmRSS:")[1].split()[0])


if __name__ == "__main__":
    asyncio.run(_replica(sys.argv[1], int(sys.argv[2])))
