"""An enqueuer with a place to die at, right between claim and enqueue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Waiting
from slotqueue.protocols import Enqueuer


class FragileEnqueuer:
    """Hands everything on to another enqueuer.

    Args:
        enqueuer: the one that does the work.
        before: called with the key of each slot before its first enqueue; may end the process.
        accepted: called with the key of each message that the queue took.
    """

    def __init__(self, enqueuer: Enqueuer, before: Callable[[str], None], accepted: Callable[[str], None]) -> None:
        self.kind = enqueuer.kind
        self._enqueuer = enqueuer
        self._before = before
        self._accepted = accepted

    def use_default(self, url: str) -> None:
        """Take this Redis where none was named."""
        use_default = getattr(self._enqueuer, "use_default", None)
        if use_default is not None:
            use_default(url)

    def guard_workers(self, namespace: str, open_guard: object) -> None:
        """Guard the workers of a system whose enqueuer does that."""
        guard_workers = getattr(self._enqueuer, "guard_workers", None)
        if guard_workers is not None:
            guard_workers(namespace, open_guard)

    def prepare(self) -> None:
        """Get ready for the first message, where the enqueuer does that."""
        prepare = getattr(self._enqueuer, "prepare", None)
        if prepare is not None:
            prepare()

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`."""
        self._enqueuer.check(job)

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`."""
        for message in messages:
            if message.slip.n == 0:
                self._before(message.slip.key)
        answers = await self._enqueuer.enqueue(messages)
        for message, answer in zip(messages, answers, strict=True):
            if isinstance(answer, Accepted):
                self._accepted(message.slip.key)
        return answers

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        """See `Enqueuer.given_up`."""
        return await self._enqueuer.given_up(waiting)

    async def close(self) -> None:
        """See `Enqueuer.close`."""
        await self._enqueuer.close()
