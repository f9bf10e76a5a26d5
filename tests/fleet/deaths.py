"""Places to die at: a store and an enqueuer that signal their own process, exactly at the arrow ordered."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from arq.connections import RedisSettings
from redis.asyncio.connection import Connection

from slotqueue.answers import Run
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.enqueuers.inprocess import InProcessEnqueuer
from slotqueue.errors import InvalidSlotKey
from slotqueue.messages import Delivery, Message, Waiting
from slotqueue.protocols import Command
from slotqueue.slots import parse_key
from slotqueue.store import AsyncStore
from slotqueue.store.scripts import source_of
from tests.fleet.orders import Arrow

T = TypeVar("T")
STRUCK = "struck"
"""Redis hash: job -> the slot at which its process died."""


class Doom:
    """Knows when to die.

    Args:
        arrow: where, "" for never.
        job: at whose first slot.
        fate: the signal.
        note: writes down at which slot, before the end.
    """

    def __init__(self, arrow: str, job: str, fate: signal.Signals, note: Callable[[str, str], object]) -> None:
        self.arrow = arrow
        self.job = job
        self.fate = fate
        self._note = note

    def is_due(self, arrow: Arrow, key: str) -> bool:
        return arrow == self.arrow and parse_key(key).job == self.job

    def strike(self, arrow: Arrow, key: str) -> None:
        """Die, if it is time: nothing after this line happens."""
        if self.is_due(arrow, key):
            self.end(key)

    def end(self, key: str) -> None:
        self.arrow = ""
        self._note(self.job, key)
        os.kill(os.getpid(), self.fate)


class MortalEnqueuer:
    """Hands everything on to arq's, and dies before or after an enqueue."""

    kind = ArqEnqueuer.kind

    def __init__(
        self, broker_url: str, doom: Doom, *, enqueue_ms: float = 0.0, is_held: Callable[[], bool] = lambda: False
    ) -> None:
        self._arq = ArqEnqueuer(RedisSettings.from_dsn(broker_url))
        self._doom = doom
        self._seconds = enqueue_ms / 1000
        self._is_held = is_held
        self.use_default = self._arq.use_default
        self.check = self._arq.check

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        for message in messages:
            self._doom.strike(Arrow.CLAIMED, message.slip.key)
        if self._seconds:
            await asyncio.sleep(self._seconds * len(messages))
        while self._is_held():  # noqa: ASYNC110 - it is another process that lets go
            await asyncio.sleep(0.02)
        answers = await self._arq.enqueue(messages)
        for message in messages:
            self._doom.strike(Arrow.ENQUEUED, message.slip.key)
        return answers

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return await self._arq.given_up(waiting)

    async def close(self) -> None:
        await self._arq.close()


class MortalLine(InProcessEnqueuer):
    """Runs functions in this process, and dies before or after an enqueue."""

    def __init__(self, doom: Doom) -> None:
        super().__init__()
        self._doom = doom

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        for message in messages:
            self._doom.strike(Arrow.CLAIMED, message.slip.key)
        answers = await super().enqueue(messages)
        for message in messages:
            self._doom.strike(Arrow.ENQUEUED, message.slip.key)
        return answers


class MortalStore(AsyncStore):
    """Dies at a verb: before it, after its answer, or with the command on its way and the answer unread."""

    doom: Doom
    sweep_ms: float = 0.0

    async def run(self, command: Command[T]) -> T:
        slots = [key for key in command.keys if _is_slot_key(key)]
        doom, verb = self.doom, command.script
        for key in slots:
            await self._before(command, key)
        if verb == "take_over":
            await asyncio.sleep(self.sweep_ms / 1000)
        answer = await super().run(command)
        for key in slots:
            if verb == "confirm":
                doom.strike(Arrow.CONFIRMED, key)
            if verb == "begin" and isinstance(answer, Run):
                doom.strike(Arrow.BEGUN, key)
        return answer

    async def _before(self, command: Command[Any], key: str) -> None:
        """Die before the verb has had its answer."""
        doom = self.doom
        if command.script == "begin":
            doom.strike(Arrow.TAKEN, key)
            if doom.is_due(Arrow.CONFIRMED, key):  # in a process that is replica and worker, the confirm comes first
                await asyncio.Event().wait()
        if command.script == "finish":
            doom.strike(Arrow.RETURNED, key)
            if doom.is_due(Arrow.FINISH_UNSENT, key):
                await self._say_to_nobody(command)
                doom.end(key)
            if doom.is_due(Arrow.FINISH_UNHEARD, key):
                await self._say_without_listening(command, until=f"{key}:done")
                doom.end(key)

    async def _say_without_listening(self, command: Command[T], *, until: str) -> None:
        """Send the command, leave its answer in the socket, and wait until it has had its effect."""
        connection = await self.client.connection_pool.get_connection("EVAL")
        await connection.send_command(*_packed(command))
        answer = 0
        while not answer:
            answer = await self.client.exists(until)

    async def _say_to_nobody(self, command: Command[T]) -> None:
        """Send the command to a server that never reads it."""
        nobody = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*nobody.sockets[0].getsockname())
        writer.writelines(Connection().pack_command(*_packed(command)))
        await writer.drain()


def _is_slot_key(key: str) -> bool:
    try:
        parse_key(key)
    except InvalidSlotKey:
        return False
    return True


def _packed(command: Command[Any]) -> list[Any]:
    return ["EVAL", source_of(command.script), len(command.keys), *command.keys, *command.args]
