"""What is to happen in a simulation, by its time. Time stands still while something happens, and jumps to the next."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable
from itertools import count

Action = Callable[[], Awaitable[None]]


class Agenda:
    """Actions by time, and the time.

    Args:
        now: ms since the epoch.
    """

    def __init__(self, now: int) -> None:
        self.now = now
        self._heap: list[tuple[int, int, Action]] = []
        self._order = count()

    def at(self, ms: float, action: Action) -> None:
        """Have something happen then, or at once where that is past."""
        heapq.heappush(self._heap, (max(self.now, int(ms)), next(self._order), action))

    def after(self, ms: float, action: Action) -> None:
        """Have something happen in a while."""
        self.at(self.now + ms, action)

    def next_at(self) -> int | None:
        """When the next action is due; None where there is none."""
        return self._heap[0][0] if self._heap else None

    async def step(self) -> None:
        """Let the time of the next action come, and it happen."""
        self.now, _, action = heapq.heappop(self._heap)
        await action()
