"""procrastinate: every worker defers what is due, and a unique row of PostgreSQL lets one message through."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.peers.peer import Command, Load, Message, Peer, Place, program
from benchmarks.peers.postgres import Psql
from tests.servers import ServerFailed

_APP = "benchmarks.peers.procrastinate_app.app"
_STAMP = """
ALTER TABLE procrastinate_events
    ADD COLUMN seen_at double precision DEFAULT extract(epoch FROM clock_timestamp()),
    ADD COLUMN seen_from text DEFAULT host(inet_client_addr()) || ':' || inet_client_port()
"""
_DEFERRED = """
SELECT e.id, e.seen_at, e.seen_from, j.args FROM procrastinate_events e JOIN procrastinate_jobs j ON j.id = e.job_id
WHERE e.type = 'deferred' AND e.id > {after}
"""
_UNCOMMITTED = 200
"""So many events may have been given a number and be committed only after a later one."""
_PAUSE_S = 0.2


def _prepare(place: Place, load: Load) -> None:
    """Apply its schema; two more columns of its table of events tell when and from where each row came, by default."""
    command = Command([place.bin / "procrastinate", "--app", _APP, "schema", "--apply"])
    argv = [str(each) for each in command.argv]
    done = subprocess.run(argv, env=command.environment(load), capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerFailed(f"procrastinate schema --apply: {done.stderr.strip()}")
    psql = Psql(place.url)
    psql.ask(_STAMP)
    psql.close()


class Rows:
    """Reads the rows that procrastinate writes as it defers a job."""

    def __init__(self, psql: Psql) -> None:
        self._psql = psql
        self._newest = 0
        self._asked_at = 0.0
        self._found: dict[int, Message] = {}
        self._sorted: Sequence[Message] = ()

    def messages(self) -> Sequence[Message]:
        """All up to a moment ago: the server, which shares the cores with the peer, is not asked more often."""
        if time.monotonic() - self._asked_at > _PAUSE_S:
            self._ask()
            self._asked_at = time.monotonic()
        return self._sorted

    def sent(self) -> None:
        """Not seen."""

    def _ask(self) -> None:
        for line in self._psql.ask(_DEFERRED.format(after=self._newest - _UNCOMMITTED)):
            number, at, sender, args = line.split("\t")
            said = json.loads(args)
            self._newest = max(self._newest, int(number))
            self._found[int(number)] = Message(float(at), said["job"], said["timestamp"], sender)
        self._sorted = sorted(self._found.values())


@contextmanager
def _observe(place: Place) -> Iterator[Rows]:
    psql = Psql(place.url)
    try:
        yield Rows(psql)
    finally:
        psql.close()


PEER = Peer(
    name="procrastinate",
    package="procrastinate",
    requirements=("procrastinate", "psycopg[binary,pool]"),
    replica=program("procrastinate", "--app", _APP, "worker"),
    observe=_observe,
    setup="three `procrastinate worker` on a PostgreSQL as it comes; one task, registered once for each job by"
    " `app.periodic(cron=..., periodic_id=...)`, with the sixth field for seconds",
    documentation="https://procrastinate.readthedocs.io/en/stable/howto/advanced/cron.html",
    server="postgres",
    prepare=_prepare,
    remarks="It wakes half a second after each instant on purpose, so as never to be early. Its workers run the jobs"
    " too.",
)
