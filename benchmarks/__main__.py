"""Run the benchmarks: `python -m benchmarks [burst|idle|lateness|sweep ...]`."""

from __future__ import annotations

import sys

from benchmarks import burst, idle, lateness, sweep
from benchmarks.report import machine

ALL = {"lateness": lateness, "burst": burst, "idle": idle, "sweep": sweep}


def main() -> int:
    """Run those that were named, or all."""
    names = sys.argv[1:] or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    print(machine())
    for name in names:
        print(f"{name}: {(ALL[name].run.__doc__ or '').strip()}", flush=True)
        for figure in ALL[name].run():
            print(figure, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
