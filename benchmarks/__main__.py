"""Run the benchmarks: `python -m benchmarks [lateness|burst|idle|sweep|ask|replicas|beat ...]`.

Without a name those of the arq environment run; `beat` needs an environment with Celery. Two have options of their own
when they are named first: `replicas [--help]`, which writes a part of docs/benchmarks.md, and `peers [--help]`, which
measures slotqueue beside the others, each in an environment of its own, and writes the rest.
"""

from __future__ import annotations

import importlib
import sys

from benchmarks.report import machine

WITH_ARQ = ("lateness", "burst", "idle", "sweep", "ask", "replicas")
OF_THEIR_OWN = {"replicas": "benchmarks.growth", "peers": "benchmarks.peers.run"}
ALL = (*WITH_ARQ, "beat")


def main() -> int:
    """Run those that were named, or all."""
    names = sys.argv[1:] or list(WITH_ARQ)
    if own := OF_THEIR_OWN.get(names[0]):
        answer: int = importlib.import_module(own).main(names[1:])
        return answer
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
