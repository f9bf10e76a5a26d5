"""A primary of Redis and a replica that lags behind it, and the failover from one to the other."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from tests.proxy import Proxy
from tests.servers import Server

LAG_S = 0.3
_OPTIONS = [
    *("--repl-diskless-sync-delay", "0"),
    *("--appendfsync", "no"),  # what was written outlives the process; a slow disk is not what is tried here
]


class Pair:
    """Two servers, one replicating the other with a lag; a context manager.

    Args:
        lag: seconds, of each piece of what the primary has written.
    """

    def __init__(self, lag: float = LAG_S) -> None:
        self._lag = lag
        self._stack = ExitStack()
        self._ways: dict[int, Proxy] = {}
        """To each server, by its port, for the one that replicates it."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.primary, self.replica = (
                stack.enter_context(Server(appendonly=True, options=_OPTIONS)) for _ in range(2)
            )
            for server in (self.primary, self.replica):
                way = self._ways[server.port] = stack.enter_context(Proxy(server.port))
                way.delay_replies(self._lag)
            self._follow()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def fail_over(self) -> None:
        """Kill the primary and promote the replica, which lacks the newest writes."""
        self.primary.kill()
        self.replica.ask("REPLICAOF NO ONE")
        self.primary, self.replica = self.replica, self.primary

    def mend(self) -> None:
        """Bring back what was the primary, as the replica of the new one."""
        self.replica.restart(keep_data=False)
        self._follow()

    def _follow(self) -> None:
        self.replica.ask(f"REPLICAOF 127.0.0.1 {self._ways[self.primary.port].port}")
