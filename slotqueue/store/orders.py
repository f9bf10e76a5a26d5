"""What an operator has done, as commands: what to send, and how to read the answer. No input or output here."""

# ruff: noqa: ANN401 - a reply is anything until it is read
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from slotqueue.protocols import Command
from slotqueue.slots import parse_key
from slotqueue.store.keys import Keys

ALL_JOBS = "*"
"""What stands for every job among the pauses."""
STILL_KNOWN_MS = 6 * 60_000
"""A replica says every five minutes which jobs it knows."""


class Answer(NamedTuple):
    """What became of one slot: the word of the script, and a detail where it has one."""

    word: str
    detail: str = ""


class Paused(NamedTuple):
    """A pause: until when, ms, 0 for ever; since when, ms, 0 where unknown; by whom and why."""

    until: int
    since: int
    by: str
    why: str


class Wanted(NamedTuple):
    """A slot that an operator wants: all that a record needs. Instants are ms since the epoch.

    Args:
        key: the slot key, with or without a mark.
        fire: fire time.
        start: start of the interval.
        task: with its worker system, "arq:send_digest".
        version: of the job.
        terms: `Terms.text`.
    """

    key: str
    fire: int
    start: int
    task: str
    version: str
    terms: str


@dataclass(frozen=True, slots=True)
class Orders:
    """The verbs of an operator, for one namespace; each Lua file has its contract.

    Args:
        keys: of the namespace.
        by: who: "alice@web-1", no blanks.
    """

    keys: Keys
    by: str

    def retry(self, keys: Sequence[str]) -> Command[list[Answer]]:
        """Bring slots back that ended without being done."""
        return self._of_slots("retry", keys, [self.by, *map(_job_of, keys)])

    def order(self, wanted: Sequence[Wanted], said: str) -> Command[list[Answer]]:
        """Have slots run that nobody has decided; `said` is how the record tells it: "triggered"."""
        args: list[str | int] = [self.by, said]
        for slot in wanted:
            args += (_job_of(slot.key), slot.fire, slot.start, slot.task, slot.version, slot.terms)
        return self._of_slots("order", [slot.key for slot in wanted], args)

    def discard(self, keys: Sequence[str]) -> Command[list[Answer]]:
        """Take dead letters from the list."""
        return self._of_slots("discard", keys, [self.by, *map(_job_of, keys)])

    def abandon(self, keys: Sequence[str]) -> Command[list[Answer]]:
        """Give open slots of a forgotten job up."""
        return self._of_slots("abandon", keys, [self.by, *map(_job_of, keys)])

    def pause(self, jobs: Sequence[str], until: int, why: str) -> Command[list[int]]:
        """Pause jobs until an instant, ms, 0 for ever; -1: let them go on.

        Answers until when each was paused before, -1 where it was not.
        """
        keys = [self.keys.of("pauses"), self.keys.of("pausers")]
        return Command("pause", keys, [until, self.by, why, *jobs], lambda reply: [int(each) for each in reply])

    def pauses(self) -> Command[dict[str, Paused]]:
        """Ask for the pauses in force, by job or `ALL_JOBS`."""

        def read(reply: Any) -> dict[str, Paused]:
            return {job: _paused(until, said) for job, until, said in zip(*[iter(reply)] * 3, strict=True)}

        return Command("pauses", [self.keys.of("pauses"), self.keys.of("pausers")], [], read)

    def forget(self, job: str) -> Command[Answer]:
        """Drop a job from the registries; the detail is how long ago it was last seen, ms."""
        keys = self.keys
        own = [keys.missed(job), keys.out(job), keys.held(job)]
        registries = [keys.of(word) for word in ("decided", "about", "past", "pauses", "pausers")]
        args: list[str | int] = [job, STILL_KNOWN_MS]
        return Command(
            "forget", [keys.of("jobs"), *own, *registries], args, lambda reply: Answer(reply[0], str(reply[1]))
        )

    def _of_slots(self, verb: str, keys: Sequence[str], args: list[str | int]) -> Command[list[Answer]]:
        return Command(verb, [*self.keys.shared, *keys], args, lambda reply: [Answer(*_texts(each)) for each in reply])


def _job_of(key: str) -> str:
    return parse_key(key).job


def _paused(until: str, said: str) -> Paused:
    since, _, more = said.partition(" ")
    by, _, why = more.partition(" ")
    return Paused(int(until), int(since) if since.isdecimal() else 0, by, why)


def _texts(answer: Any) -> tuple[str, str]:
    word, detail = answer
    return str(word), str(detail)
