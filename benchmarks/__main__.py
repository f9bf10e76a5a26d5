"""Run the benchmarks: `python -m benchmarks [lateness|burst|idle|sweep|ask|beat ...]`.

Without a name those of the arq environment run; `beat` needs an environment with Celery.
"""

from __future__ import annotations

import importlib
import sys

from benchmarks.report import machine

WITH_ARQ = ("lateness", "burst", "idle", "sweep", "ask")
ALL = (*WITH_ARQ, "beat")


def main() -> int:
    """Run those that were named, or all."""
    names = sys.argv[1:] or list(WITH_ARQ)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
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
