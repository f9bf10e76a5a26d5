"""Questions about all jobs of a namespace at once: a thousand jobs or slots a round trip, whatever there is of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from slotqueue.protocols import Command
from slotqueue.slots import SlotState
from slotqueue.store.asking import CHUNK, Asker
from slotqueue.store.readings import as_number

T = TypeVar("T")

_PAGE = 10_000
"""Members of an index that are read at a time."""
_STATES = {state.value: state for state in SlotState}


class Tally(NamedTuple):
    """Where a slot stands. `state` is None where there is no record; `is_broken` where it is damaged.

    `is_late`: done, but later than `done_within`. `is_overdue`: open, and `done_within` has passed. `is_repeated`: it
    took more than one attempt. `is_expired`: skipped because it came too late.
    """

    state: SlotState | None
    is_broken: bool = False
    is_late: bool = False
    is_overdue: bool = False
    is_repeated: bool = False
    is_expired: bool = False


class Survey(Asker):
    """Asks about many jobs and slots; every answer is in the order of the question."""

    async def heads(self, jobs: Sequence[str]) -> list[str]:
        """Find the key of each job's newest slot on record, "" where it has none."""
        tails = await self._in_chunks("heads", [self.keys.listing(job) for job in jobs])
        return [f"{self.keys.namespace}:{job}:{tail}" if tail else "" for job, tail in zip(jobs, tails, strict=True)]

    async def listed(self, jobs: Sequence[str], sinces: Sequence[int], until: int) -> list[list[str]]:
        """Find the tails of the slots on record of each job, fire times from its `since` to `until`, oldest first.

        Args:
            jobs: names.
            sinces: one for each, ms, inclusive.
            until: ms, inclusive.
        """
        listings = [self.keys.listing(job) for job in jobs]
        windows = [ms for since in sinces for ms in (since, until)]
        tails = await self._in_chunks("listed", listings, windows)
        return [each.split() for each in tails]

    async def tallies(self, keys: Sequence[str]) -> list[Tally]:
        """Tell where slots stand."""
        records = [self.keys.record(key) for key in keys]
        words = await self._in_chunks("tally", records, read=lambda reply: reply.split(" "))
        known = {word: _tally_of(word) for word in set(words)}
        return [known[word] for word in words]

    async def open_keys(self) -> list[str]:
        """Find the keys of all open slots."""
        return await self._all_of("open")

    async def dead_keys(self) -> list[str]:
        """Find the keys of all dead letters, lost slots among them."""
        return await self._all_of("dead")

    async def counts(self) -> dict[str, int]:
        """Read how many slots were claimed, and how many ended in each state: see `reckon` in record.lua."""
        (found,) = await self.ask([lambda pipe: pipe.hgetall(self.keys.of("counts"))])
        return {} if isinstance(found, Exception) else {field: as_number(text) for field, text in found.items()}

    async def _all_of(self, word: str) -> list[str]:
        found: list[str] = []
        key = self.keys.of(word)
        while True:
            first = len(found)
            (reply,) = await self.ask([partial(_page, key, first)])
            found += self.sound(reply)
            if len(found) - first < _PAGE:
                return list(dict.fromkeys(found))  # what moved while it was read may come twice

    async def _in_chunks(
        self,
        script: str,
        keys: Sequence[str],
        args: Sequence[int] = (),
        read: Callable[[Any], list[str]] = list,
    ) -> list[str]:
        each = len(args) // len(keys) if keys else 0
        commands = [
            Command(script, keys[at : at + CHUNK], args[at * each : (at + CHUNK) * each], read)
            for at in range(0, len(keys), CHUNK)
        ]
        answers: list[str] = []
        for at in range(0, len(commands), 2):  # while Redis works at one, the next is packed and the last one read
            for some in await asyncio.gather(*map(self.store.run, commands[at : at + 2])):
                answers += some
        return answers


def _page(key: str, first: int, pipe: Any) -> object:  # noqa: ANN401 - redis-py's pipeline
    return pipe.zrange(key, first, first + _PAGE - 1)


def _tally_of(word: str) -> Tally:
    state, *marks = word.split(".")
    return Tally(
        _STATES.get(state),
        is_broken=state != "none" and state not in _STATES,
        is_late="late" in marks,
        is_overdue="overdue" in marks,
        is_repeated="again" in marks,
        is_expired="expired" in marks,
    )
