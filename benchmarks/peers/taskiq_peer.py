"""taskiq's scheduler: a process of its own that looks each second what is due and knows of no other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from benchmarks.peers.monitor import watching
from benchmarks.peers.peer import Peer, program


def read(command: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    """`XADD taskiq ... data <message>`, whose first argument is the job's name."""
    if command[:2] == ["XADD", "taskiq"]:
        yield json.loads(command[-1])["args"][0], None


PEER = Peer(
    name="taskiq",
    package="taskiq",
    requirements=("taskiq", "taskiq-redis"),
    replica=program("taskiq", "scheduler", "benchmarks.peers.taskiq_app:scheduler"),
    observe=watching(read, mark='"XADD" "taskiq"'),
    setup="three `taskiq scheduler` with a `LabelScheduleSource` and a `RedisStreamBroker`;"
    " each second: `interval`, the burst: `time`, else `cron`",
    documentation="https://taskiq-python.github.io/guide/scheduling-tasks.html",
    remarks="Its guide says that only one may run; three send each message three times.",
)
