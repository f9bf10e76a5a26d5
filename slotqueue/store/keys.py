"""The names of every key in Redis. All begin with the namespace, so a hash tag there keeps them on one cluster node.

Keys of a slot end in a word behind the timestamp, keys of a job in a word behind the name, keys of the namespace hold
one colon only: no two can be the same, whatever a job is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from slotqueue.errors import InvalidSlotKey
from slotqueue.slots import parse_key

WORDS = {
    **dict.fromkeys(("epoch", "app", "letters"), "string"),
    **dict.fromkeys(("open", "dead", "tasks", "changes", "gaps"), "zset"),
    **dict.fromkeys(("decided", "counts", "pauses", "pausers", "past", "jobs", "about", "schedules", "stored"), "hash"),
    **dict.fromkeys(("replicas", "workers"), "hash"),
}
"""What a namespace keeps about itself, each word under a key of its own, and of which type that is."""


class SlotKeys(NamedTuple):
    """The four keys of a slot. Scripts get the first; they name the others after it, as is done here."""

    claim: str
    done: str
    record: str
    listing: str


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one namespace."""

    namespace: str

    def of(self, word: str) -> str:
        """A key of the namespace; `WORDS` has them all."""
        return f"{self.namespace}:{word}"

    @property
    def shared(self) -> list[str]:
        """What every verb about slots gets first."""
        words = ("epoch", "open", "dead", "pauses", "tasks", "decided", "changes", "counts")
        return [self.of(word) for word in words]

    def listing(self, job: str) -> str:
        """The slots of a job that are on record: zset, fire time in ms -> the key's tail."""
        return f"{self.namespace}:{job}:slots"

    def out(self, job: str) -> str:
        """The slots of a job that are out, where its slots must not overlap: zset, deadline in ms -> the key's tail."""
        return f"{self.namespace}:{job}:out"

    def held(self, job: str) -> str:
        """The slots of a job that are held: zset, fire time in ms -> the key's tail."""
        return f"{self.namespace}:{job}:held"

    def missed(self, job: str) -> str:
        """The gaps of a job: list."""
        return f"{self.namespace}:{job}:missed"

    def record(self, key: str) -> str:
        """The record of a slot: hash."""
        return f"{key}:record"

    def slot_of(self, key: str) -> SlotKeys:
        """The keys of a slot of which only the key is known.

        A text that is no slot key gets keys as well: it may have strayed into the open slots.
        """
        try:
            job = parse_key(key).job
        except InvalidSlotKey:
            job = ""
        return SlotKeys(key, f"{key}:done", self.record(key), self.listing(job))
