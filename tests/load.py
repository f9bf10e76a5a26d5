"""Other work for the machine and for a server, while tests run: `make test-load`.

One process keeps a core busy; another one has the server handle small commands for somebody else, one bounded pipeline
after the other, as a busy application would.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

VARIABLE = "SLOTQUEUE_TEST_LOAD"
PATIENCE = 4 if os.environ.get(VARIABLE) else 1
"""By how much longer tests wait for what will come."""
_ROOT = Path(__file__).parents[1]
_PIPELINE = b"".join(
    b"ZADD load:scores %d member:%d\r\nSET load:text:%d %s PX 60000\r\n" % (i, i, i, b"x" * 200) for i in range(100)
)


class Load:
    """Two processes that keep a core and a server busy, where that is asked for; a context manager.

    Args:
        port: of the server.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        for what in ("burn", str(self._port)) if os.environ.get(VARIABLE) else ():
            command = [sys.executable, "-m", "tests.load", what]
            self._processes.append(subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL))
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait(10)


def _burn() -> None:
    while os.getppid() != 1:
        sum(range(100_000))


def _flood(port: int) -> None:
    """Until the server or whoever started this is gone."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        while os.getppid() != 1:
            connection.sendall(_PIPELINE)
            for _ in range(200):
                if not answers.readline():
                    return


if __name__ == "__main__":
    _burn() if sys.argv[1] == "burn" else _flood(int(sys.argv[1]))
