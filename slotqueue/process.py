"""What a process is called: a name that people recognise, and a random part so that no two are the same."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from importlib.metadata import PackageNotFoundError, version


def process_id(name: str | None = None) -> str:
    """Make an id, after the fork: "web-1-4711-5f3a9c"."""
    host = name or socket.gethostname().partition(".")[0][:40]
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


def about_process(**more: object) -> str:
    """What the registries say of a process, as JSON; `more` can be written as such."""
    facts = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "slotqueue": own_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    return json.dumps({**facts, **more})


def own_version() -> str:
    """The installed version of slotqueue; "unknown" in a tree that is not installed."""
    try:
        return version("slotqueue")
    except PackageNotFoundError:
        return "unknown"
