"""A store that answers as a test tells it to, and a guard before it. The real store is tested elsewhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

from slotqueue.answers import Dropped, Run, Verdict, Word
from slotqueue.errors import StoreUnavailable
from slotqueue.guard import AsyncGuard, SyncGuard
from slotqueue.messages import Slip
from slotqueue.policy import Policy, terms_of
from slotqueue.protocols import Command, Process, Verbs

T = TypeVar("T")
AWAY = StoreUnavailable("away")
FIRE = 1_796_000_000_000


def slip(*, lease: float = 1, on_crash: Any = "complete") -> Slip:
    terms = terms_of("digest", Policy(on_crash=on_crash, lease=lease), timedelta(hours=1)).text
    return Slip("ran:digest:2026-11-30T09:00", 0, FIRE, FIRE - 3_600_000, "arq:send", "v1", terms)


class ScriptedVerbs:
    """Commands that hold the verb and what it was asked, instead of a script."""

    def begin(self, slip: Slip, *, token: str, worker: str, from_fence: str | int) -> Command[Any]:
        return _command("begin", Run(slip, 7, token, worker, 1))

    def heartbeat(self, runs: list[Run]) -> Command[Any]:
        return _command("heartbeat", *runs)

    def finish(self, run: Run) -> Command[Any]:
        return _command("finish", run)

    def postpone(self, run: Run, delay_ms: int, why: str, *, is_message_gone: bool = False) -> Command[Any]:
        return _command("postpone", delay_ms, why)

    def fail(self, run: Run, error: str) -> Command[Any]:
        return _command("fail", error)

    def enlist(self, worker: Process) -> Command[Any]:
        return _command("enlist", *worker.tasks)

    def leave(self, process_id: str) -> Command[Any]:
        return _command("leave", process_id)


def _command(verb: str, *about: Any) -> Command[Any]:
    return Command(verb, [], cast("Any", about), lambda reply: reply)


class Script:
    """What the store answers: for each verb a list, whose last entry stays; an exception is raised.

    `asked` holds (verb, what) in order; `waiting` verbs are not answered before `go` is set, and `arrived` is set once
    one of them waits.
    """

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []
        self.waiting: set[str] = set()
        self.arrived, self.go = threading.Event(), threading.Event()
        self.closed = 0
        self.doubt = ""
        """What stands against trusting an answer that replicas of Redis were to acknowledge."""

    async def has_arrived(self) -> None:
        """Wait until a verb waits for its answer."""
        assert await asyncio.to_thread(self.arrived.wait, 30)

    def verbs_asked(self, *, but: tuple[str, ...] = ("heartbeat",)) -> list[str]:
        return [verb for verb, *_ in self.asked if verb not in but]

    def answer(self, command: Command[Any]) -> Any:
        about = tuple(cast("Any", command.args))
        self.asked.append((command.script, *about))
        plan = self.answers.get(command.script)
        answer = (plan.pop(0) if len(plan) > 1 else plan[0]) if plan else _usual(command.script, about)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _usual(verb: str, about: tuple[Any, ...]) -> Any:
    match verb:
        case "begin":
            return about[0]
        case "heartbeat":
            return [Verdict(Word.YES) for _ in about]
        case "fail":
            return Verdict(Word.DEAD)
        case "enlist" | "leave":
            return 0
        case _:
            return Verdict(Word.YES)


class ScriptedStore:
    """The async store."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.verbs = cast("Verbs", ScriptedVerbs())

    async def run(self, command: Command[T]) -> T:
        if command.script in self.script.waiting:
            self.script.arrived.set()
            await asyncio.to_thread(self.script.go.wait, 20)
        return cast("T", self.script.answer(command))

    async def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        return await self.run(command), self.script.doubt

    async def close(self) -> None:
        self.script.closed += 1


class ScriptedSyncStore:
    """The store of a thread."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.verbs = cast("Verbs", ScriptedVerbs())

    def run(self, command: Command[T]) -> T:
        if command.script in self.script.waiting:
            self.script.arrived.set()
            self.script.go.wait(20)
        return cast("T", self.script.answer(command))

    def run_acknowledged(self, command: Command[T]) -> tuple[T, str]:
        return self.run(command), self.script.doubt

    def close(self) -> None:
        self.script.closed += 1


def async_guard(script: Script, emit: Callable[[object], None] = lambda _: None) -> AsyncGuard:
    return AsyncGuard(
        Process("w1", tasks=("arq:send",)),
        ScriptedStore(script),
        open_heartbeat_store=lambda: ScriptedSyncStore(script),
        emit=emit,
    )


def sync_guard(script: Script, emit: Callable[[object], None] = lambda _: None) -> SyncGuard:
    return SyncGuard(
        Process("w1", tasks=("celery:send",)),
        ScriptedSyncStore(script),
        open_heartbeat_store=lambda: ScriptedSyncStore(script),
        emit=emit,
    )


__all__ = ["AWAY", "Dropped", "Script", "async_guard", "slip", "sync_guard"]
