"""An enqueuer that keeps what it is given: these tests are about Redis, not about a worker system."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Waiting


class Listing:
    """Implements `slotqueue.protocols.Enqueuer`."""

    kind = "listing"

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._new: asyncio.Queue[Message] = asyncio.Queue()

    async def next(self, seconds: float = 40) -> Message:
        """Wait for the next message."""
        return await asyncio.wait_for(self._new.get(), seconds)

    def check(self, job: Job) -> None:
        """Anything will do."""

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.messages += messages
        for message in messages:
            self._new.put_nowait(message)
        return [Accepted(is_new=True)] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        """There is nothing to close."""
