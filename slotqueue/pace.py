"""How fast messages go into the queues: how many slots may be claimed that are yet to be enqueued."""

from __future__ import annotations

from collections.abc import Mapping

from slotqueue.protocols import Enqueuer

_LARGEST_BATCH = 1000
_BATCH_SECONDS = 1.0
_WAITING_SECONDS = 3.0


class Pace:
    """How long the queues take for a message, as far as that is known.

    Args:
        enqueuers: by kind; may grow. One that knows its own pace says it, as `seconds_a_message`.
    """

    _UNTRIED_SECONDS = 0.05
    _SMALL, _QUICK_SECONDS = 20, 0.02

    def __init__(self, enqueuers: Mapping[str, Enqueuer]) -> None:
        self._enqueuers = enqueuers
        self._measured: float | None = None
        self._losses = 0

    @property
    def batch(self) -> int:
        """How many messages surely take no longer than a second; 1 to 1000."""
        return max(1, min(_LARGEST_BATCH, int(_BATCH_SECONDS / self._seconds())))

    def is_room_behind(self, size: int) -> bool:
        """Whether what waits already takes 3 s at most; behind a queue whose pace nobody knows, nothing waits."""
        return self._is_known() and size * self._seconds() <= _WAITING_SECONDS

    def learn(self, size: int, seconds: float, *, is_part: bool = False) -> None:
        """Note how long a batch took. A small one that was quick says little of a large one's pace.

        Args:
            size: how many messages.
            seconds: for all of them.
            is_part: whether some of the work had been done before that: then it may only be slower than was thought.
        """
        each, before = max(1e-6, seconds / size), self._seconds()
        if is_part and each <= before:
            return
        if each > before and size < self._SMALL and seconds < self._QUICK_SECONDS:
            return
        self._measured = each if each > before else (each + before) / 2

    def lose(self) -> None:
        """Note that others won: that says nothing of a pace, but a burst of theirs shall not take a hundred trips."""
        self._losses += 1

    def _is_known(self) -> bool:
        return self._measured is not None or self._said() is not None

    def _seconds(self) -> float:
        known = self._measured or self._said()
        return known or max(self._UNTRIED_SECONDS / 2**self._losses, _BATCH_SECONDS / 400)

    def _said(self) -> float | None:
        said: list[float | None]
        said = [getattr(enqueuer, "seconds_a_message", None) for enqueuer in self._enqueuers.values()]
        paces = [each for each in said if each is not None]
        return max(paces) if paces and len(paces) == len(said) else None
