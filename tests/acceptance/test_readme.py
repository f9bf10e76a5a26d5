"""The README's example is executed as it stands: its file, its two commands, its four questions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic

import pytest

README = Path(__file__).parents[2] / "README.md"
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.processes


class Printing:
    """A started command whose lines are awaited."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        environment = {**environment, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._queue: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def await_line(self, part: str, seconds: float = 60) -> str:
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0:
            try:
                line = self._queue.get(timeout=left)
            except Empty:
                break
            self.lines.append(line)
            if part in line:
                return line
        raise AssertionError(f"no line with {part!r} within {seconds} s; there were:\n{''.join(self.lines)}")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=30)

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            for line in lines:
                self._queue.put(line)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str) -> Path:
    example = re.search(r"<!-- example -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert example, "the README has no example"
    text = example[1]
    assert text.count("redis://localhost:6379/0") == 1
    (tmp_path / "app.py").write_text(text.replace("redis://localhost:6379/0", redis_url), encoding="utf-8")
    return tmp_path


@pytest.fixture
def worker(folder: Path) -> Iterator[Printing]:
    process = Printing([str(BIN / "arq"), "app.WorkerSettings"], folder)
    process.await_line("Starting worker")
    yield process
    process.stop()


def ask(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [BIN / "slotqueue", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_is_about_twenty_lines(folder: Path) -> None:
    lines = [line for line in (folder / "app.py").read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= 20


def test_the_example_runs_as_the_readme_says(folder: Path, worker: Printing) -> None:
    replica = Printing([str(BIN / "slotqueue"), "run", "app:slots"], folder)
    try:
        replica.await_line("ready: 2 jobs")
        worker.await_line("sending the short digest of ")
        done = worker.await_line("send_digest ● ")
        key = re.search(r"ran:digest:\S+?(?=:send_digest)", done)
        assert key, done
        assert "0 problems" in ask(folder, "check", "app:slots")
        assert "Europe/Berlin" in ask(folder, "next", "app:slots", "-n", "5")
        assert key[0] in ask(folder, "slots", "app:slots")
        assert "done" in ask(folder, "show", "app:slots", key[0])
    finally:
        assert replica.stop() == 0
