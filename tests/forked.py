"""Celery's command line in processes forked from one that has imported it: the import costs a second of a core.

Everything else is as where a shell starts them: a session, a folder and an environment of their own, output in a file.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

_IMPORTED = (
    *("celery.bin.celery", "celery.bin.worker", "celery.bin.beat", "celery.apps.worker", "celery.apps.beat"),
    *("celery.concurrency.prefork", "celery.concurrency.thread", "celery.concurrency.solo", "celery.backends.redis"),
    *("celery.worker.consumer", "celery.worker.strategy", "kombu.transport.redis", "kombu.transport.pyamqp"),
    *("slotqueue", "slotqueue.beat", "slotqueue.bootstep", "slotqueue.enqueuers.celery", "redis.asyncio"),
)
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(list(_IMPORTED))


class ForkedCelery:
    """`celery ARGUMENTS`, with the methods of `subprocess.Popen`.

    Args:
        arguments: of the command line.
        folder: in which it runs.
        environment: all of it.
        log: takes its output.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        log.touch()
        self._process = _forking.Process(
            target=_run, args=(list(arguments), str(folder), dict(environment), str(log)), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("celery", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], folder: str, environment: dict[str, str], log: str) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for stream in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    sys.argv = ["celery", *arguments]
    from celery.__main__ import main

    sys.exit(main())
