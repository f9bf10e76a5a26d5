"""Starts the demo as a process of its own and looks at what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-c", "from slotqueue.cli import main; main()", "demo"]


class Ended(NamedTuple):
    """A demo that is over."""

    code: int
    out: str
    err: str

    @property
    def figures(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


def run_demo(folder: Path, *arguments: str) -> Ended:
    with demo(folder, *arguments) as process:
        out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, err)


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A running demo in a process group of its own, with `folder` for its temporary files."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", "COLUMNS": "100"},
        start_new_session=True,
    )
    try:
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
    finally:
        process.wait(60)


def children_of(pid: int) -> dict[int, str]:
    """The living children of a process: id -> command line."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True)
    found = {}
    for line in listed.stdout.splitlines():
        child, parent, state, command = line.split(maxsplit=3)
        if int(parent) == pid and not state.startswith("Z"):
            found[int(child)] = command
    return found


def alive(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if _is_alive(pid)]


def wait_until_dead(pids: Iterable[int]) -> None:
    deadline = time.monotonic() + 40
    while left := alive(pids):
        assert time.monotonic() < deadline, f"still alive: {left}"
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")
