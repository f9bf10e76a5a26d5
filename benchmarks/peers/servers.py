"""The server of a run: fresh for each, so that nothing of one peer lies in another's way."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from benchmarks.counters import Counters, counters
from tests.servers import Server


class Serving(Protocol):
    """A running server."""

    @property
    def url(self) -> str:
        """Where it is."""

    def commands(self) -> int:
        """How many commands (for Postgres: transactions) it has carried out, those inside scripts among them."""

    def seconds(self) -> float:
        """CPU seconds that it has used."""


class Valkey:
    """A Valkey, told apart from the `Server` of the tests by what it counts."""

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self.url = server.url

    def counters(self) -> Counters:
        """All that it counts."""
        return counters(self._port)

    def commands(self) -> int:
        """By INFO commandstats."""
        return self.counters().commands

    def seconds(self) -> float:
        """By INFO cpu, of the main thread and all."""
        return self.counters().seconds


def serve(kind: Literal["valkey", "postgres"]) -> AbstractContextManager[Serving]:
    """Start one, and end it afterwards."""
    if kind == "postgres":
        found: AbstractContextManager[Serving] = importlib.import_module("benchmarks.peers.postgres").serve()
        return found
    return _valkey()


def version() -> str:
    """Of the Valkey that the harness starts."""
    with Server() as server:
        told: dict[str, str] = dict(re.findall(r"^(\w+_version):(\S+)", server.ask("INFO server"), re.MULTILINE))
    return told.get("valkey_version") or told["redis_version"]  # Valkey also tells which Redis it stands for


@contextmanager
def _valkey() -> Iterator[Serving]:
    with Server() as server:
        yield Valkey(server)
