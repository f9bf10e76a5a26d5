"""When lazy arguments are evaluated, and what becomes of a message whose argument raises."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any, cast

from celery.beat import BeatLazyFunc

from slotqueue.beat.lazy import LazyEnqueuer
from slotqueue.messages import Accepted, Delivery, Message, NotBefore, Refused, Slip


class Taking:
    """In place of a `CeleryEnqueuer`: keeps what it is given."""

    kind = "celery"
    ahead_seconds = 0.02
    seconds_a_message = 0.0004

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.messages += messages
        return [Accepted()] * len(messages)


def message(*args: object, not_before: NotBefore | None = None) -> Message:
    slip = Slip("ran:tidy:2026-11-30T09:00", 0, 0, 0, "celery:work", "v", "")
    return Message(slip, "work", args, {"when": BeatLazyFunc(monotonic)}, None, not_before=not_before)


async def test_a_lazy_argument_that_looks_at_the_clock_sees_the_slots_time() -> None:
    """A message is handed over ahead of its time; an hour or a day may begin with it."""
    taking = Taking()
    lazy = LazyEnqueuer(cast("Any", taking))
    at = monotonic() + 0.1
    assert await lazy.enqueue([message(not_before=NotBefore(0, at))]) == [Accepted()]
    (found,) = taking.messages
    assert at <= found.kwargs["when"] < at + 5
    assert (lazy.ahead_seconds, lazy.seconds_a_message) == (0.02, 0.0004)


async def test_a_lazy_argument_that_raises_is_its_own_messages_affair() -> None:
    taking = Taking()
    answers = await LazyEnqueuer(cast("Any", taking)).enqueue([message(BeatLazyFunc(lambda: 1 // 0)), message(7)])
    refused, accepted = answers
    assert isinstance(refused, Refused)
    assert "ZeroDivisionError" in refused.problem
    assert accepted == Accepted()
    assert [each.args for each in taking.messages] == [(7,)]
