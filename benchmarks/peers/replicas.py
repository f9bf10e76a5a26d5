"""Processes of one peer under one load, with its server and its observer."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.peers.peer import ROOT, Load, Message, Observer, Observing, Peer, Place, When
from benchmarks.peers.servers import Serving, serve

_POLL_S = 0.02


class Stopped(Exception):
    """A replica ended by itself; the message ends with what it said last."""


@dataclass
class Run:
    """A peer at work.

    Args:
        processes: its replicas, in the order of their start.
        began: monotonic time just before the first was started.
    """

    peer: Peer
    load: Load
    place: Place
    server: Serving
    observer: Observer
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    began: float = 0.0

    def start(self, replicas: int) -> None:
        """Start so many more."""
        self.began = self.began or time.monotonic()
        for number in range(len(self.processes), len(self.processes) + replicas):
            command = self.peer.replica(self.place, self.load, number)
            with self._log(number).open("wb") as log:
                process = subprocess.Popen(
                    [str(each) for each in command.argv],
                    env=command.environment(self.load),
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that its children end with it
                )
            self.processes.append(process)

    def messages(self) -> Sequence[Message]:
        """All that came into the queue so far.

        Raises:
            Stopped: a replica has ended that nobody killed.
        """
        for number, process in enumerate(self.processes):
            if process.poll() not in (None, -signal.SIGKILL):
                last = " ".join(self.said(number)[-1:])
                raise Stopped(f"replica {number} ended with {process.returncode}: {last}")
        return self.observer.messages()

    def said(self, number: int) -> list[str]:
        """The lines that a replica has written so far."""
        return self._log(number).read_text(encoding="utf-8", errors="replace").strip().splitlines()

    def holders(self) -> dict[int, int]:
        """The number of the replica that holds a connection, by the connection's port."""
        return {
            port: number
            for number, process in enumerate(self.processes)
            for each in self._family(process)
            for port in _ports(each)
        }

    def wait(self, seconds: float, until: Callable[[Sequence[Message]], bool] | None = None) -> bool:
        """Wait so long, or until what came into the queue is as wanted; whether it is."""
        end = time.monotonic() + seconds
        while True:
            found = self.messages()
            if until and until(found):
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_S if until else 0.5, left))

    def kill_sender(self, message: Message) -> int:
        """SIGKILL the replica that sent the message; its number."""
        number = self.holders().get(message.port)
        if number is None:
            raise LookupError(f"no replica holds {message.sender}")
        self._strike(self.processes[number])
        self.processes[number].wait(60)
        return number

    def usage(self) -> tuple[float, int]:
        """CPU seconds and resident bytes of all replicas so far, their children among them."""
        seconds, size = 0.0, 0
        for process in self.processes:
            if process.poll() is None:
                for each in self._family(process):
                    with suppress(psutil.NoSuchProcess, ProcessLookupError):
                        seconds += _cpu_seconds(each.pid)
                        size += each.memory_info().rss
        return seconds, size

    def close(self) -> None:
        """End all replicas at once."""
        for process in self.processes:
            self._strike(process)
        for process in self.processes:
            process.wait(60)

    def _log(self, number: int) -> Path:
        return self.place.folder / f"replica-{number}.log"

    @staticmethod
    def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
        try:
            head = psutil.Process(process.pid)
            return [head, *head.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    @staticmethod
    def _strike(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _ports(process: psutil.Process) -> set[int]:
    try:
        return {end.laddr.port for end in process.net_connections("tcp") if end.laddr}
    except psutil.NoSuchProcess:
        return set()


class _Nothing:
    """An observer that looks away, so as to cost nothing."""

    def messages(self) -> Sequence[Message]:
        return ()

    def sent(self) -> None:
        pass


@contextmanager
def unobserved(_: Place) -> Iterator[Observer]:
    """How not to observe."""
    yield _Nothing()


@contextmanager
def run(
    peer: Peer, bin_folder: Path, jobs: int, schedule: When, *, at: int | None = None, observe: Observing | None = None
) -> Iterator[Run]:
    """A fresh server, and an observer where messages are expected; no replica yet. All end afterwards."""
    with serve(peer.server) as server, tempfile.TemporaryDirectory(prefix="slotqueue-peer-") as folder:
        place = Place(server.url, Path(folder), bin_folder)
        load = Load(jobs, schedule, int(time.time()) if at is None else at, server.url)
        if peer.prepare:
            peer.prepare(place, load)
        observing = unobserved if schedule == "daily" else observe or peer.observe
        with observing(place) as observer:
            running = Run(peer, load, place, server, observer)
            try:
                yield running
            finally:
                running.close()


def _cpu_seconds(pid: int) -> float:
    """What all threads of a process have used, ended ones too; `/proc` tells it in steps of 10 ms only.

    Raises:
        ProcessLookupError: there is no such process.
    """
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if error:
        raise ProcessLookupError(error, os.strerror(error))
    return time.clock_gettime(clock.value)
