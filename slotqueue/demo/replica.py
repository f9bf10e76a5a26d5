"""One replica of the demo, a process: `python -m slotqueue.demo.replica MODULE` runs the module's `slots`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import signal
import sys
import threading

from slotqueue.app import SlotQueue
from slotqueue.demo.stage import leave_with_the_demo


async def _run(slots: SlotQueue) -> None:
    """Tick and sweep until SIGTERM, or until the demo is gone."""
    stopping = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # Windows has no such signals; the process ends at once there
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    threading.Thread(target=leave_with_the_demo, daemon=True).start()
    await slots.run(stopping)


if __name__ == "__main__":
    asyncio.run(_run(importlib.import_module(sys.argv[1]).slots))
