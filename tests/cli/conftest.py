"""Fixtures of the command line's tests.

- `folder`: the current folder, empty but for the `app.py` that `write_app` puts there.
- `slotqueue`: runs a verb in this process.
- `start`: runs the real command as a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slotqueue.cli import main
from tests.cli.process import Started
from tests.store.stage import Stage

FAKE = '''
from __future__ import annotations

import asyncio
from datetime import timedelta

from slotqueue import ConfigurationError, Cron, Every, Policy, SlotQueue
from slotqueue.messages import Accepted, Refused


class Fake:
    """An enqueuer whose queue is this process's output."""

    kind = "fake"
    seconds = 0.0
    answer = Accepted()

    def check(self, job):
        if any(callable(each) for each in job.args):
            raise ConfigurationError("a function does not serialise", job=job.name, argument="args")

    async def enqueue(self, messages):
        print("enqueuing", *(message.slip.key for message in messages), flush=True)
        await asyncio.sleep(self.seconds)
        return [self.answer] * len(messages)

    async def given_up(self, waiting):
        return {}

    async def close(self):
        pass


fake = Fake()
slots = SlotQueue("{url}", enqueuer=fake, defaults=Policy(on_crash="complete"), sweep_every=0.2)
'''

Slotqueue = Callable[..., Result]
Start = Callable[..., Started]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLOTQUEUE_APP", "SLOTQUEUE_REDIS", "SLOTQUEUE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    sys.path.remove("") if "" in sys.path else None
    yield tmp_path
    sys.path[:] = before
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write_app(folder: Path) -> Callable[..., None]:
    """Write `app.py`: the fake enqueuer, and the lines that a test adds."""

    def write(lines: str = "", url: str = "redis://127.0.0.1:1/0") -> None:
        (folder / "app.py").write_text(FAKE.replace("{url}", url) + lines)

    return write


@pytest.fixture
def slotqueue(folder: Path) -> Slotqueue:
    """Run a verb in this process, the application's module imported anew."""

    def run(*args: str, env: dict[str, str] | None = None) -> Result:
        sys.modules.pop("app", None)
        result = CliRunner().invoke(main, args, env=env, prog_name="slotqueue")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start the real command as a process of its own; what still runs at the end is killed."""
    started: list[Started] = []

    def run(*args: str, **env: Any) -> Started:
        process = Started(args, folder, {**os.environ, **env})
        started.append(process)
        return process

    yield run
    for process in started:
        process.close()


@pytest.fixture
def stage(redis_url: str) -> Iterator[Stage]:
    stage = Stage(redis_url)
    yield stage
    stage.close()
