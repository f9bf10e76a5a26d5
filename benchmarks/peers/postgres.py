"""A PostgreSQL for the peers that keep their queue in one: Debian's, as a child process on a loopback port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.servers import ServerFailed, ServerMissing, free_port

_DEBIANS = Path("/usr/lib/postgresql")
_ACCOUNT = "postgres"
_READY_WITHIN_S = 30.0
_END = "-- answered --"


class Postgres:
    """A running server.

    Args:
        process: its postmaster.
        url: of its one database, which trusts who connects over loopback.
        psql: a session for questions of the harness.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, psql: Psql) -> None:
        self.url = url
        self._process = process
        self._psql = psql

    def commands(self) -> int:
        """How many transactions it has committed."""
        return int(
            self._psql.ask("SELECT pg_stat_get_db_xact_commit(oid) FROM pg_database WHERE datname = 'postgres'")[0]
        )

    def seconds(self) -> float:
        """CPU seconds of all its processes, those that have ended among them."""
        head = psutil.Process(self._process.pid)
        gone = head.cpu_times()
        total = gone.user + gone.system + gone.children_user + gone.children_system
        for each in head.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                total += times.user + times.system
        return float(total)


class Psql:
    """A session of psql, kept open: a question costs a round trip, and no client library is needed.

    Raises:
        ServerMissing: this machine has no psql.
    """

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [str(_program("psql")), "-X", "--quiet", "--no-align", "--tuples-only", "--field-separator=\t", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for the harness
        )

    def ask(self, statements: str) -> list[str]:
        """The lines of the answer, fields between tabs.

        Raises:
            ServerFailed: psql ended, or the server refused.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{statements};\n\\echo {_END}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while (line := self._process.stdout.readline().rstrip("\n")) != _END:
            if self._process.poll() is not None or line.startswith(("ERROR:", "FATAL:")):
                raise ServerFailed(f"{statements}: {line}")
            lines.append(line)
        return lines

    def close(self) -> None:
        """End the session."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def serve() -> Iterator[Postgres]:
    """A fresh server, ended afterwards. Its settings are the defaults but for 500 connections: 50 workers hold pools.

    Raises:
        ServerMissing: this machine has no PostgreSQL.
        ServerFailed: it did not start; the message ends with what it said last.
    """
    program, initdb = _program("postgres"), _program("initdb")
    user = _ACCOUNT if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.TemporaryDirectory(prefix="slotqueue-postgres-") as name:
        folder = Path(name)
        data, log = folder / "data", folder / "server.log"
        if user:
            shutil.chown(folder, user, user)
        _made(initdb, data, user)
        port = free_port()
        command = [str(program), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", name, "-N", "500"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, user=user, group=user, stdout=output, stderr=output, cwd=name, start_new_session=True
            )
        try:
            url = f"postgresql://{_ACCOUNT}@127.0.0.1:{port}/postgres"
            _wait_until_ready(process, port, log)
            psql = Psql(url)
            try:
                yield Postgres(process, url, psql)
            finally:
                psql.close()
        finally:
            process.send_signal(signal.SIGINT)  # ends it without waiting for its clients
            process.wait(20)


def _made(initdb: Path, data: Path, user: str | None) -> None:
    command = [str(initdb), "-D", str(data), "-U", _ACCOUNT, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    done = subprocess.run(command, user=user, group=user, capture_output=True, text=True, check=False, cwd=data.parent)
    if done.returncode:
        raise ServerFailed(f"initdb: {done.stderr.strip()}")


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    command = [str(_program("pg_isready")), "-q", "-h", "127.0.0.1", "-p", str(port)]
    end = time.monotonic() + _READY_WITHIN_S
    while subprocess.run(command, check=False).returncode:
        if process.poll() is not None or time.monotonic() > end:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise ServerFailed(f"PostgreSQL did not start: {' '.join(said)}")
        time.sleep(0.05)


def _program(name: str) -> Path:
    """The newest that Debian's packages brought, else what is on the path."""
    found = sorted(_DEBIANS.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1]
    if on_path := shutil.which(name):
        return Path(on_path)
    raise ServerMissing(f"no {name} here: install Debian's package postgresql")
