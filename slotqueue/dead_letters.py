"""A job for each dead letter, for the pager: `SlotQueue(dead_letter="task")`.

Each dead or lost slot becomes a slot of its own, "<namespace>:dead-letter:<job>:<fire time>~d<when it died>", so that
one claim, an enqueue under one id, the lease and the sweep hold for it as for any other: every replica may tell of a
letter, one does, and none is forgotten when that one dies. A slot that dies again is told again. The first replica with
a `dead_letter` sets from when on letters are told; what died a day ago is old news. Of letters about letters nobody is
told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from slotqueue.answers import Offer
from slotqueue.errors import InvalidSlotKey
from slotqueue.jobs import Job
from slotqueue.protocols import Store
from slotqueue.slots import KeyParts, Slot, key_at, parse_key

PREFIX = "dead-letter:"
"""What the job's name in the key of such a slot begins with."""
LETTERS_A_SWEEP = 100
_REMEMBERED = 10_000


class DeadLetters:
    """Finds dead letters, and makes the job of each.

    Args:
        store: the coordinating Redis.
        template: the job that is told of them, without arguments.
        namespace: what every key begins with.
        epoch: names the data of this Redis, as the ticker knows it; "" before it does.
    """

    def __init__(self, store: Store, template: Job, namespace: str, epoch: Callable[[], str]) -> None:
        self.epoch = epoch
        self._store = store
        self._template = template
        self._namespace = namespace
        self._after = 0
        self._seen: deque[str] = deque(maxlen=_REMEMBERED)

    async def find(self) -> list[Offer]:
        """Find letters that this replica has not offered yet; to be settled once they are.

        Raises:
            StoreUnavailable: ask again.
        """
        found = await self._store.run(self._store.verbs.letters(self._after, LETTERS_A_SWEEP))
        seen, slots = set(self._seen), []
        for key, at in found:
            parts = _parts_of(key)
            if parts is not None and not parts.job.startswith(PREFIX) and f"{key} {at}" not in seen:
                slots.append(self._slot(parts, at))
        jobs = await self.jobs_of([slot.key for slot in slots])
        return [Offer(job, slot) for job, slot in zip(jobs, slots, strict=True) if job is not None]

    def settle(self, offers: Sequence[Offer]) -> None:
        """Do not find these again: the store has decided them."""
        for offer in offers:
            dead, at = _letter_of(parse_key(offer.slot.key))
            self._seen.append(f"{dead} {at}")
            self._after = max(self._after, at)

    async def jobs_of(self, keys: Sequence[str]) -> list[Job | None]:
        """The jobs of such slots, their arguments read anew; None for slots of any other kind.

        Raises:
            StoreUnavailable: ask again.
        """
        letters = [self._letter(key) for key in keys]
        wanted = [letter for letter in letters if letter]
        answers = await self._store.run(self._store.verbs.told(wanted)) if wanted else []
        told = iter(answers)
        return [self._job(letter, *next(told)) if letter else None for letter in letters]

    def _letter(self, key: str) -> str:
        """The dead slot that such a slot tells of; "" for slots of any other kind."""
        parts = _parts_of(key)
        return _letter_of(parts)[0] if parts is not None and parts.job.startswith(PREFIX) else ""

    def _slot(self, parts: KeyParts, at: int) -> Slot:
        name = f"{PREFIX}{parts.job}"
        mark = f"~d{at}" + (f".{parts.mark[1:]}" if parts.mark else "")
        key = f"{key_at(self._namespace, name, parts.fire_time)}{mark}"
        return Slot(key, name, parts.fire_time, parts.fire_time - timedelta(minutes=1))

    def _job(self, key: str, state: str, why: str, error: str) -> Job:
        parts = parse_key(key)
        told: dict[str, Any] = {
            "slot": key,
            "job": parts.job,
            "fire_time": parts.fire_time.isoformat(),
            "state": state,
            "reason": why,
            "error": error,
        }
        return replace(self._template, name=f"{PREFIX}{parts.job}", kwargs=told)


def _letter_of(parts: KeyParts) -> tuple[str, int]:
    """The dead slot, and since when it is dead, from the key of the slot that tells of it."""
    at, _, mark = parts.mark.removeprefix("~d").partition(".")
    job = parts.job.removeprefix(PREFIX)
    key = key_at(parts.namespace, job, parts.fire_time) + (f"~{mark}" if mark else "")
    return key, int(at) if at.isdecimal() else 0


def _parts_of(key: str) -> KeyParts | None:
    try:
        return parse_key(key)
    except InvalidSlotKey:
        return None
