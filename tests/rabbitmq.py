"""A real RabbitMQ for the tests: a child process with a node name, a home and ports of its own, on loopback only.

Debian's package rabbitmq-server brings it; the service that the package may have started is never touched, and neither
is its epmd: this one has its own, and both end with the fixture, by their process ids.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.servers import ServerFailed, ServerMissing, free_port

_PROGRAMS = (Path("/usr/lib/rabbitmq/bin/rabbitmq-server"), Path("/usr/local/lib/rabbitmq/bin/rabbitmq-server"))
_READY_WITHIN_S = 300.0
_STOP_WITHIN_S = 15.0


class RabbitMQ:
    """One RabbitMQ node; usable as a context manager.

    Raises:
        ServerMissing: this machine has none.
    """

    def __init__(self) -> None:
        found = [path for path in _PROGRAMS if path.exists()]
        epmd = shutil.which("epmd")
        if not found or epmd is None:
            raise ServerMissing("no RabbitMQ here: install Debian's package rabbitmq-server")
        self._program, self._epmd = found[0], epmd
        self._folder = tempfile.TemporaryDirectory(prefix="slotqueue-rabbitmq-")
        self._port = 0
        self._environment: dict[str, str] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self.url_at(self._port)

    @staticmethod
    def url_at(port: int) -> str:
        """The URL of what leads to the node, such as a proxy."""
        return f"amqp://guest:guest@127.0.0.1:{port}//"

    @property
    def port(self) -> int:
        return self._port

    def pause(self) -> None:
        """Stop the node where it stands: connections stay open, nothing is answered."""
        self._signal(self._processes[-1], signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(self._processes[-1], signal.SIGCONT)

    def kill(self) -> None:
        """End the node where it stands; what it has confirmed is on its disk."""
        node = self._processes.pop()
        self._signal(node, signal.SIGKILL)
        node.wait(_STOP_WITHIN_S)

    def drop_data(self) -> None:
        """Forget all queues and messages of a node that was killed."""
        shutil.rmtree(Path(self._folder.name) / "data")

    def start(self) -> None:
        """Start the node, the first time or again, on the same port, and wait until it answers.

        Raises:
            ServerFailed: it did not come up.
        """
        self._launch([str(self._program)])
        deadline = time.monotonic() + _READY_WITHIN_S
        while not _is_amqp(self._port):
            if self._processes[-1].poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"RabbitMQ did not come up: {self._log().read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def close(self) -> None:
        for process in reversed(self._processes):
            self._signal(process, signal.SIGCONT)
            self._signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_WITHIN_S)
            self._signal(process, signal.SIGKILL)  # what of its group has not gone with it
            process.wait(_STOP_WITHIN_S)
        self._processes.clear()
        self._folder.cleanup()

    def _prepare(self) -> None:
        """Write the node's settings, and start an epmd for it."""
        folder = Path(self._folder.name)
        self._port, epmd_port, node_port = free_port(), free_port(), free_port()
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{self._port}\nlog.console = true\n")
        (folder / "enabled_plugins").write_text("[].\n")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))},
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"slotqueue-{secrets.token_hex(4)}@localhost",
            "RABBITMQ_DIST_PORT": str(node_port),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "no-such-file"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }
        self._launch([self._epmd, "-port", str(epmd_port), "-address", "127.0.0.1"])

    def _launch(self, command: list[str]) -> None:
        with self._log().open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    command,
                    cwd=self._folder.name,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _log(self) -> Path:
        return Path(self._folder.name) / "server.log"

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def taken(url: str, queue: str = "slots") -> list[Any]:
    """Take all messages off a queue of a broker; kombu's messages.

    Whatever is there is found; for what a publisher has not seen confirmed it waits a moment.
    """
    import kombu

    found: list[Any] = []
    with kombu.Connection(url) as connection, connection.SimpleQueue(queue) as simple:
        empty_since = None
        while empty_since is None or time.monotonic() < empty_since + 0.3:
            each = simple.queue.get()
            if each is None:
                empty_since = empty_since or time.monotonic()
                time.sleep(0.02)
            else:
                empty_since = None
                each.ack()
                found.append(each)
    return found


def _is_amqp(port: int) -> bool:
    """Whether a broker greets there; the AMQP connection is not opened."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(2)
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(connection.recv(1))
    except OSError:
        return False
