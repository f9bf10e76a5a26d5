"""What a Valkey or Redis counts of itself."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.servers import ask_at

_CALLS = re.compile(r"^cmdstat_([^:]+):calls=(\d+)", re.MULTILINE)
_FIELD = re.compile(r"^(total_net_input_bytes|used_cpu_sys|used_cpu_user):([\d.]+)", re.MULTILINE)


class Counters(NamedTuple):
    """Since the server's start, or between two looks.

    Args:
        commands: carried out, those inside scripts among them.
        scripts: EVALSHAs. Once it has started, a replica of slotqueue sends nothing else.
        received: bytes.
        seconds: CPU, of the main thread and all.
    """

    commands: int
    scripts: int
    received: int
    seconds: float

    def since(self, before: Counters) -> Counters:
        """What came to it after an earlier look."""
        return Counters(
            self.commands - before.commands,
            self.scripts - before.scripts,
            self.received - before.received,
            self.seconds - before.seconds,
        )


def counters(port: int) -> Counters:
    """Ask the server on a loopback port."""
    return read(ask_at(port, "INFO all", 10))


def read(info: str) -> Counters:
    """Of what INFO says."""
    calls = {name: int(count) for name, count in _CALLS.findall(info)}
    fields = {name: float(value) for name, value in _FIELD.findall(info)}
    seconds = fields["used_cpu_sys"] + fields["used_cpu_user"]
    return Counters(sum(calls.values()), calls.get("evalsha", 0), int(fields["total_net_input_bytes"]), seconds)
