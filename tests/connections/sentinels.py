"""A primary, a replica of it, and three Sentinels that watch them, each a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.connections.replication import await_that, primary_with_replica
from tests.servers import Server, ask_at, find_binary, free_port, requested_kind

SERVICE = "mymaster"
_SILENCE_MS = 800
"""After this long a Sentinel takes a server for dead."""


class Watched:
    """Two servers under the eyes of three Sentinels.

    Args:
        servers: the primary first, at the start.
        ports: of the Sentinels.
    """

    def __init__(self, servers: list[Server], ports: list[int]) -> None:
        self.servers = servers
        self.ports = ports

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"redis+sentinel://{hosts}/{SERVICE}/0"

    @property
    def primary(self) -> Server:
        """The server that takes writes."""
        return next(each for each in self.servers if each.is_running and "role:master" in each.ask("INFO replication"))

    def await_agreement(self) -> None:
        """Wait until every Sentinel knows the replica and the other two, and names the primary."""
        await_that(lambda: all(map(self._knows_all, self.ports)), "the Sentinels do not know all")

    def _knows_all(self, port: int) -> bool:
        said = ask_at(port, "INFO sentinel", 1.0)
        return f"status=ok,address=127.0.0.1:{self.primary.port},slaves=1,sentinels=3" in said


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """Start everything, and wait until a failover could go through."""
    with contextlib.ExitStack() as stack:
        primary, replica = stack.enter_context(primary_with_replica())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slotqueue-sentinels-")))
        ports = [stack.enter_context(_sentinel(folder, primary.port)) for _ in range(3)]
        both = Watched([primary, replica], ports)
        both.await_agreement()
        yield both


@contextlib.contextmanager
def _sentinel(folder: Path, watches: int) -> Iterator[int]:
    port = free_port()
    settings = folder / f"{port}.conf"
    settings.write_text(
        f"port {port}\n"
        "bind 127.0.0.1\n"
        f"sentinel monitor {SERVICE} 127.0.0.1 {watches} 2\n"
        f"sentinel down-after-milliseconds {SERVICE} {_SILENCE_MS}\n"
        f"sentinel failover-timeout {SERVICE} 2000\n",
        encoding="utf-8",
    )
    command = [str(find_binary(requested_kind())), str(settings), "--sentinel"]
    with (folder / f"{port}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    try:
        await_that(lambda: _answers(port), "a Sentinel does not answer")
        yield port
    finally:
        process.kill()
        process.wait(10)


def _answers(port: int) -> bool:
    try:
        return ask_at(port, "PING", 1.0) == "PONG"
    except OSError:
        return False
