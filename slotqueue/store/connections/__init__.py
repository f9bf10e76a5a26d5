"""How slotqueue connects to its Redis: one server, behind Sentinels, or a cluster; by URL, or as a given client does.

Every socket has a time limit, a call is repeated once, and no password is in any text.
"""

from slotqueue.store.connections.places import Place, async_client, blocking_client, place_of
from slotqueue.store.connections.words import UNREACHABLE, how_to_cluster, is_read_only, safe_url, unavailable

__all__ = [
    "UNREACHABLE",
    "Place",
    "async_client",
    "blocking_client",
    "how_to_cluster",
    "is_read_only",
    "place_of",
    "safe_url",
    "unavailable",
]
