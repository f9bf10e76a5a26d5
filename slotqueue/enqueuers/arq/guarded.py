"""A guarded function of an arq worker: the function, what arq grants it, and the worker's connections."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from arq.jobs import Deserializer

from slotqueue.guard import BEGIN_SECONDS, AsyncGuard

TaskFunction = Callable[..., Coroutine[Any, Any, object]]

_LONGEST_PATIENCE_SECONDS = 30.0


class Connection(Protocol):
    """A worker's connection to one namespace."""

    @property
    def guard(self) -> AsyncGuard:
        """The guard of this process."""
        ...

    @property
    def is_stopping(self) -> bool | None:
        """Whether the worker is shutting down; None where nobody can tell."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What arq's worker grants a function.

    Args:
        timeout: seconds, None for no limit.
        max_tries: arq gives a message up that comes for another try.
        is_retrying: whether arq runs a message again after `Retry` and cancellation.
    """

    timeout: float | None
    max_tries: int
    is_retrying: bool

    @property
    def own_timeout(self) -> float | None:
        """A little shorter than arq's, whose own looks like any other cancellation."""
        return None if self.timeout is None else self.timeout - min(self.timeout / 20, 1.0)

    @property
    def patience(self) -> float:
        """How long a begin may take, so that a store that is away is never taken for a job that is slow."""
        longest = BEGIN_SECONDS if self.is_retrying else _LONGEST_PATIENCE_SECONDS
        return longest if self.timeout is None else min(longest, self.timeout / 2)


@dataclass(frozen=True, slots=True)
class Guarded:
    """A function of a worker class, with what is needed to guard it.

    Args:
        function: the application's coroutine function.
        queue_name: of the worker, None for its pool's default.
        deserializer: of the worker, None for its pool's.
        limits: of the function.
        connections: by namespace.
    """

    function: TaskFunction
    queue_name: str | None
    deserializer: Deserializer | None
    limits: Limits
    connections: Mapping[str, Connection]
