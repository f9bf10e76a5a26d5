"""A cluster of three primaries, each a process of its own, up in a second or two."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.connections.conftest import new_server
from tests.connections.replication import await_that, in_step
from tests.servers import Server, ServerFailed, free_port

_SHARES = ((0, 5460), (5461, 10922), (10923, 16383))


@contextlib.contextmanager
def three_nodes() -> Iterator[list[Server]]:
    """Start the nodes, deal out the hash slots, introduce the nodes to each other, and wait until all agree."""
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(new_server(*_options())) for _ in _SHARES]
        for number, (node, (first, last)) in enumerate(zip(nodes, _SHARES, strict=True), start=1):
            node.ask(f"CLUSTER SET-CONFIG-EPOCH {number}")
            node.ask(f"CLUSTER ADDSLOTSRANGE {first} {last}")
        for node in nodes[1:]:
            nodes[0].ask(f"CLUSTER MEET 127.0.0.1 {node.port} {_bus_of(node)}")
        await_that(lambda: all(_knows(node, 3) for node in nodes), "the nodes do not know each other")
        yield nodes


@contextlib.contextmanager
def replica_of(primary: Server) -> Iterator[Server]:
    """Let one node more join a cluster of three as a replica of a node, and wait until it has all that this one has."""
    with new_server(*_options()) as replica:
        replica.ask(f"CLUSTER MEET 127.0.0.1 {primary.port} {_bus_of(primary)}")
        await_that(lambda: _knows(replica, 4), "the new node does not know the others")
        await_that(lambda: _is_following(replica, primary), "the new node does not follow")
        in_step(primary)
        yield replica


def _is_following(replica: Server, primary: Server) -> bool:
    with contextlib.suppress(ServerFailed):  # the node that it is to follow is not known yet
        replica.ask(f"CLUSTER REPLICATE {primary.ask('CLUSTER MYID')}")
    return "role:slave" in replica.ask("INFO replication")


def _options() -> tuple[str, ...]:
    """The bus has a port of its own: ten thousand above the other lie ports of outgoing connections."""
    bus = ("--cluster-port", str(free_port()), "--cluster-node-timeout", "10000")
    return ("--cluster-enabled", "yes", *bus, "--repl-diskless-sync-delay", "0")


def _bus_of(node: Server) -> str:
    return node.options[node.options.index("--cluster-port") + 1]


def _knows(node: Server, count: int) -> bool:
    said = node.ask("CLUSTER INFO")
    return "cluster_state:ok" in said and f"cluster_known_nodes:{count}" in said
