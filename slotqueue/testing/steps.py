"""Where in the protocol a process may die, and who decides whether it does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from slotqueue.errors import ConfigurationError
from slotqueue.slots import Slot


class Step(StrEnum):
    """Where a replica or a worker dies; the words are those of docs/guarantees.md."""

    CLAIMED = "after the claim, before the enqueue"
    ENQUEUED = "after the enqueue, before the confirm"
    CONFIRMED = "after the confirm"
    TAKEN = "a message in hand, before the begin"
    BEGUN = "after the begin, before the function"
    RUNNING = "in the function"
    RETURNED = "after the function, before the finish"
    FINISH_UNSENT = "during the finish, which never arrived"
    FINISH_UNHEARD = "during the finish, which arrived"


Crash: TypeAlias = "float | Callable[[Slot, Step], bool] | None"
"""A probability, 0 to 1, at each step of each slot; or who answers whether to die there; or nobody dies."""


class Strikes:
    """Decides who dies, and counts the dead.

    Args:
        crash: see `Crash`.
        dice: what a probability is drawn with.

    Raises:
        ConfigurationError: a probability that is none.
    """

    def __init__(self, crash: Crash, dice: random.Random) -> None:
        if isinstance(crash, int | float) and not 0 <= crash <= 1:
            raise ConfigurationError(f"{crash!r} is not between 0 and 1", argument="crash")
        self.counts: Counter[Step] = Counter()
        self._crash = crash
        self._dice = dice

    def at(self, slot: Slot, step: Step) -> bool:
        """Whether the process that reaches this step dies there."""
        if callable(self._crash):
            is_struck = self._crash(slot, step)
        else:
            is_struck = bool(self._crash) and self._dice.random() < float(self._crash or 0)
        if is_struck:
            self.counts[step] += 1
        return is_struck


class Died(BaseException):
    """A simulated replica ends here; nothing of it may go on, so that no `except Exception` stands in the way."""
