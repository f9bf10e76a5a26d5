"""The ledger: facts that the processes wrote down, in files and in Redis, read as they come in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slotqueue.demo.stage import journal_of
from slotqueue.store.connections import blocking_client
from slotqueue.store.keys import WORDS, Keys

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened.

    Args:
        at: seconds since the epoch, by this host's clock.
        what: "begun" and "finished" of a job; "Ready", "Accepted" and "Died"; or the name of a slotqueue event.
        by: the process: "replica-1".
        key: the slot's key, "" where it is about none.
        more: what else was written down.
    """

    at: float
    what: str
    by: str
    key: str
    more: dict[str, Any]


class Ledger:
    """Reads what is new.

    Args:
        url: of the Redis.
        namespace: of the demo.
        folder: where the processes write.
    """

    def __init__(self, url: str, namespace: str, folder: Path) -> None:
        self.client = blocking_client(url)
        self.keys = Keys(namespace)
        self.folder = folder
        self._journal = journal_of(namespace)
        self._read_entries = 0
        self._read_bytes: dict[Path, int] = {}

    def news(self) -> list[Fact]:
        """Read the facts since the last call, in the order of their instants.

        Raises:
            redis.RedisError: the server is gone.
        """
        facts = [fact for path in sorted(self.folder.glob("*.facts")) for fact in self._news_of(path)]
        entries: Any = self.client.lrange(self._journal, self._read_entries, -1)
        self._read_entries += len(entries)
        facts += [_fact(json.loads(entry)) for entry in entries]
        return sorted(facts, key=lambda fact: fact.at)

    def states(self, keys: Sequence[str]) -> dict[str, str]:
        """Read where slots stand, from the store's own records; "" for one without."""
        found: dict[str, str] = {}
        for at in range(0, len(keys), _CHUNK):
            some = keys[at : at + _CHUNK]
            pipe = self.client.pipeline(transaction=False)
            for key in some:
                pipe.hget(self.keys.slot_of(key).record, "state")
            found.update({key: state or "" for key, state in zip(some, pipe.execute(), strict=True)})
        return found

    def guarded_workers(self) -> int:
        """How many workers have said to the store that they are here."""
        count: Any = self.client.hlen(self.keys.of("workers"))
        return int(count)

    def now(self) -> float:
        """Redis's time, seconds since the epoch."""
        answer: Any = self.client.time()
        seconds, micros = answer
        return float(seconds + micros / 1e6)

    def erase(self, job: str, slots: Sequence[str], others: Sequence[str]) -> None:
        """Remove every key of the demo, and nothing else: their names are known, so nothing is searched for.

        Args:
            job: the demo's job.
            slots: keys of its slots.
            others: keys of the worker system.
        """
        mine = (self.keys.listing(job), self.keys.missed(job), self.keys.out(job), self.keys.held(job))
        doomed = [self._journal, *mine, *map(self.keys.of, WORDS), *others]
        for key in slots:
            doomed += self.keys.slot_of(key)
        for at in range(0, len(doomed), _CHUNK):
            self.client.unlink(*doomed[at : at + _CHUNK])

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    def _news_of(self, path: Path) -> list[Fact]:
        """Read whole lines that were added to a file."""
        start = self._read_bytes.get(path, 0)
        with path.open("rb") as file:
            file.seek(start)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read_bytes[path] = start + len(whole)
        return [_fact({"by": path.stem, **json.loads(line)}) for line in whole.splitlines()]


def _fact(facts: dict[str, Any]) -> Fact:
    at, what, by = facts.pop("at"), facts.pop("what"), facts.pop("by")
    return Fact(at, what, by, facts.pop("key", ""), facts)
