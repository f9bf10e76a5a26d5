"""See messages enter a queue of Valkey: a MONITOR connection, which tells each command with the server's own time."""

from __future__ import annotations

import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from benchmarks.peers.peer import Message, Observer, Observing, Place

Read = Callable[[Sequence[str]], Iterable[tuple[str, float | None]]]
"""Of one command and its arguments: the messages that it puts into the queue, as (job, slot)."""

_LINE = re.compile(rb"^\+(\d+\.\d+) \[\d+ ([^\]]+)\] (.*)$", re.DOTALL)
_ARGUMENT = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)")
_PLAIN = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
_LUA = "lua"


class Lines:
    """Reads the lines of MONITOR.

    Args:
        read: what is a message.
        mark: bytes that each line with a message contains; others are passed over without a closer look.
    """

    def __init__(self, read: Read, mark: bytes) -> None:
        self._read = read
        self._mark = mark
        self._caller: str | None = None
        self.sent = 0
        """Commands of clients so far; those of scripts are not sent."""

    def messages(self, lines: Iterable[bytes]) -> Iterator[Message]:
        """The messages of the lines, without their line ends. A command of a script is sent by the script's caller."""
        for line in lines:
            is_marked = self._mark in line
            head = line if is_marked else line[:200]
            if not (found := _LINE.match(head)):
                continue
            sender = found[2].decode()
            if sender == _LUA:
                sender = self._caller or _LUA
            else:
                self._caller = sender
                self.sent += 1
            if is_marked:
                at = float(found[1])
                for job, slot in self._read(arguments(found[3])):
                    yield Message(at, job, slot, sender)


def arguments(text: bytes) -> list[str]:
    """The command and its arguments, from the quoted form in which MONITOR writes them."""
    return [_ESCAPE.sub(_unescape, each).decode("utf-8", "replace") for each in _ARGUMENT.findall(text)]


def _unescape(found: re.Match[bytes]) -> bytes:
    what = found[1]
    return bytes.fromhex(what[1:].decode()) if len(what) == 3 else _PLAIN.get(what, what)


class Monitor:
    """A connection in MONITOR. A thread takes in what comes; it is read when asked."""

    def __init__(self, url: str, lines: Lines) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379))
        self._lines = lines
        self._chunks: deque[bytes] = deque()
        self._rest = b""
        self._found: list[Message] = []
        self._thread = threading.Thread(target=self._take, daemon=True)

    def start(self) -> None:
        """Return once the server tells its commands."""
        self._socket.sendall(b"MONITOR\r\n")
        answer = b""
        while not answer.endswith(b"+OK\r\n"):
            answer += self._socket.recv(5 - len(answer))
        self._thread.start()

    def close(self) -> None:
        """End the connection; what came stays."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._socket.close()

    def messages(self) -> Sequence[Message]:
        """All so far."""
        came = [self._rest]
        while self._chunks:
            came.append(self._chunks.popleft())
        *lines, self._rest = b"".join(came).split(b"\r\n")
        self._found += self._lines.messages(lines)
        return self._found

    def sent(self) -> int:
        """Commands so far, up to the last look at the messages."""
        return self._lines.sent

    def _take(self) -> None:
        while True:
            try:
                chunk = self._socket.recv(1 << 20)
            except OSError:
                return
            if not chunk:
                return
            self._chunks.append(chunk)


def watching(read: Read, *, mark: str) -> Observing:
    """How to observe a peer whose queue is in Valkey: see `Lines`."""

    @contextmanager
    def observe(place: Place) -> Iterator[Observer]:
        monitor = Monitor(place.url, Lines(read, mark.encode()))
        monitor.start()
        try:
            yield monitor
        finally:
            monitor.close()

    return observe
