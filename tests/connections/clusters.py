"""A cluster of three primaries, each a process of its own, up in a second or two."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from tests.connections.conftest import new_server
from tests.servers import Server, free_port

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
        deadline = time.monotonic() + 15
        while not all(_is_ready(node) for node in nodes):
            assert time.monotonic() < deadline, [node.ask("CLUSTER INFO") for node in nodes]
            time.sleep(0.02)
        yield nodes


def _options() -> tuple[str, ...]:
    """The bus has a port of its own: ten thousand above the other lie ports of outgoing connections."""
    return ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-node-timeout", "10000")


def _bus_of(node: Server) -> str:
    return node.options[node.options.index("--cluster-port") + 1]


def _is_ready(node: Server) -> bool:
    said = node.ask("CLUSTER INFO")
    return "cluster_state:ok" in said and "cluster_known_nodes:3" in said
