"""Run the benchmarks: `python -m benchmarks [lateness|burst|idle|sweep|ask|beat ...]`, or `... peers [--help]`.

Without a name those of the arq environment run; `beat` needs an environment with Celery; `peers` measures slotqueue
beside the others, each in an environment of its own, and writes docs/benchmarks.
"""

from __future__ import annotations

import importlib
import sys

from benchmarks.peers.run import main as peers
from benchmarks.report import machine

WITH_ARQ = ("lateness", "burst", "idle", "sweep", "ask")
ALL = (*WITH_ARQ, "beat")


def main() -> int:
    """Run those that were named, or all."""
    names = sys.argv[1:] or list(WITH_ARQ)
    if names[0] == "peers":
        return peers(names[1:])
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join((*ALL, 'peers'))}", file=sys.stderr)
        return 2
    print(machine())
    for name in names:
        benchmark = importlib.import_module(f"benchmarks.{name}")
        print(f"{name}: {(benchmark.run.__doc__ or '').strip()}", flush=True)
        for figure in benchmark.run():
            print(figure, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
