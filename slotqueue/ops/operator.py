"""Who acts, as records tell it."""

from __future__ import annotations

import getpass
import re
import socket


def operator() -> str:
    """This user on this host: "alice@web-1"."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run under a number that no user has
        user = "unknown"
    return re.sub(r"[^\w.@+-]", "_", f"{user}@{socket.gethostname().partition('.')[0]}")[:100]
