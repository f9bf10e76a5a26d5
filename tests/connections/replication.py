"""A primary and its replica: waiting until one follows the other."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

from tests.connections.conftest import new_server
from tests.servers import Server


@contextlib.contextmanager
def primary_with_replica() -> Iterator[tuple[Server, Server]]:
    """Start both, and wait until they are in step."""
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(new_server("--repl-diskless-sync-delay", "0"))
        replica = stack.enter_context(new_server("--replicaof", "127.0.0.1", str(primary.port)))
        in_step(primary)
        yield primary, replica


def in_step(primary: Server) -> None:
    """Wait until the one replica has all that the primary has."""
    await_that(lambda: _is_in_step(primary.ask("INFO replication")), "the replica is not in step")


def await_that(is_so: Callable[[], bool], otherwise: str, seconds: float = 40) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def _is_in_step(said: str) -> bool:
    theirs = re.search(r"slave0:.*state=online,offset=(\d+)", said)
    mine = re.search(r"master_repl_offset:(\d+)", said)
    return theirs is not None and mine is not None and theirs[1] == mine[1]
