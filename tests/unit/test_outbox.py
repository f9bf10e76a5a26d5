"""The outbox: in time, once, and no more than a queue can take; with queues of the test and no store at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import pytest

from slotqueue.dispatch import ENQUEUE_SECONDS, Dispatcher
from slotqueue.errors import StoreUnavailable
from slotqueue.messages import Accepted, Delivery, Message, Slip
from slotqueue.outbox import Outbox
from slotqueue.protocols import Enqueuer


class Recording(Dispatcher):
    """Notes when it was given what, and what was confirmed after it."""

    def __init__(self, enqueuers: Mapping[str, Enqueuer] | None = None) -> None:
        self.enqueuers = enqueuers or {}
        self.steps: list[str] = []
        self.at: dict[str, float] = {}
        self.failure: BaseException | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def enqueue(
        self, messages: Sequence[Message], doubt: str = "", *, within: float = ENQUEUE_SECONDS
    ) -> Sequence[Delivery]:
        assert 0 < within <= ENQUEUE_SECONDS
        await self.is_open.wait()
        self.at |= {message.slip.key: monotonic() for message in messages}
        self.steps += [f"{'drop' if doubt else 'send'} {_names(messages)}"]
        return [Accepted()] * len(messages)

    async def confirm(self, messages: Sequence[Message], answers: Sequence[Delivery]) -> Counter[str]:
        assert len(answers) == len(messages)
        self.steps += [f"confirm {_names(messages)}"]
        self.meanwhile()
        if self.failure is not None:
            raise self.failure
        return Counter(queued=len(messages))


def _names(messages: Sequence[Message]) -> str:
    return " ".join(message.slip.key for message in messages)


def _messages(*keys: str) -> list[Message]:
    return [Message(Slip(key, 0, 0, 0, "arq:work", "v", ""), "work", (), {}, None, "", {}) for key in keys]


class Quick:
    """Says its pace."""

    seconds_a_message = 0.01


def _outbox(**enqueuers: Any) -> tuple[Outbox, Recording]:
    recording = Recording(enqueuers)
    return Outbox(recording, monotonic), recording


async def test_what_is_put_in_ahead_goes_out_at_its_time_and_in_its_order() -> None:
    outbox, told = _outbox()
    now = monotonic()
    outbox.put(_messages("c"), now + 0.06, claimed_at=now)
    outbox.put(_messages("b"), now + 0.03, claimed_at=now)
    outbox.put(_messages("a"), now, claimed_at=now)
    assert await outbox.drain() == {"queued": 3}
    assert list(told.at) == ["a", "b", "c"]
    assert told.at["b"] >= now + 0.03
    assert told.at["c"] >= now + 0.06


async def test_what_was_ready_goes_out_before_any_of_it_is_confirmed() -> None:
    outbox, told = _outbox(arq=Quick())
    now = monotonic()
    for part in range(3):
        outbox.put(_messages(*(f"{part}-{i}" for i in range(100))), now + 0.5, claimed_at=now)
    assert await outbox.drain() == {"queued": 300}
    assert [step.split()[0] for step in told.steps] == ["send"] * 3 + ["confirm"]


async def test_a_message_that_is_there_is_not_taken_in_again_and_later_it_is() -> None:
    """As after an outage, when the last slots are offered again: to its owner a claim is won again."""
    outbox, told = _outbox()
    now = monotonic()
    outbox.put(_messages("a"), now + 0.02, claimed_at=now)
    outbox.put(_messages("a", "b"), now + 0.02, claimed_at=now)
    await outbox.drain()
    outbox.put(_messages("a"), now, claimed_at=now)
    await outbox.drain()
    assert sorted(word for step in told.steps for word in step.split() if word in {"a", "b"}) == ["a"] * 4 + ["b"] * 2


async def test_what_comes_at_the_moment_when_all_is_sent_goes_out_too() -> None:
    outbox, told = _outbox()

    def put() -> None:
        told.meanwhile = lambda: None
        outbox.put(_messages("b"), 0, claimed_at=monotonic())

    told.meanwhile = put
    outbox.put(_messages("a"), 0, claimed_at=monotonic())
    assert await outbox.drain() == {"queued": 2}


async def test_a_doubted_claim_is_never_sent_along_with_a_sure_one() -> None:
    outbox, told = _outbox()
    now = monotonic()
    outbox.put(_messages("a"), now, claimed_at=now)
    outbox.put(_messages("b"), now, claimed_at=now, doubt="no replica has it")
    outbox.put(_messages("c"), now, claimed_at=now)
    await outbox.drain()
    assert [step for step in told.steps if not step.startswith("confirm")] == ["send a", "drop b", "send c"]


async def test_behind_a_queue_that_nobody_knows_nothing_is_claimed_until_it_has_taken_a_few() -> None:
    outbox, told = _outbox()
    assert await outbox.room() == 20
    told.is_open.clear()
    outbox.put(_messages("a"), 0, claimed_at=monotonic())
    waiting = asyncio.ensure_future(outbox.room())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    told.is_open.set()
    assert await waiting > 20
    await outbox.drain()


async def test_no_more_is_claimed_than_a_known_queue_takes_in_a_few_seconds() -> None:
    outbox, told = _outbox(arq=Quick())
    told.is_open.clear()
    outbox.put(_messages(*map(str, range(300))), 0, claimed_at=monotonic())
    assert await outbox.room() == 100
    outbox.put(_messages("one more"), 0, claimed_at=monotonic())
    waiting = asyncio.ensure_future(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    told.is_open.set()
    await waiting
    await outbox.drain()


async def test_what_the_store_did_not_take_is_told_once_and_the_rest_goes_out() -> None:
    outbox, told = _outbox()
    told.failure = StoreUnavailable("redis://localhost: no answer")
    outbox.put(_messages("a"), 0, claimed_at=monotonic())
    outbox.put(_messages("b"), monotonic() + 0.02, claimed_at=monotonic())
    with pytest.raises(StoreUnavailable):
        await outbox.drain()
    assert list(told.at) == ["a", "b"]
    told.failure = None
    assert await outbox.drain() == {}


async def test_what_could_not_be_confirmed_is_taken_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slotqueue.outbox._CONFIRMED_AT_ONCE", 1)
    outbox, told = _outbox()
    told.failure = StoreUnavailable("redis://localhost: no answer")
    outbox.put(_messages("a", "b", "c"), 0, claimed_at=monotonic())
    with pytest.raises(StoreUnavailable):
        await outbox.drain()
    told.failure = None
    outbox.put(_messages("c"), 0, claimed_at=monotonic())
    assert await outbox.drain() == {"queued": 1}


async def test_an_error_that_nobody_foresaw_ends_it_and_what_is_left_is_the_sweeps() -> None:
    outbox, told = _outbox()
    told.failure = ZeroDivisionError("a bug")
    outbox.put(_messages("a"), 0, claimed_at=monotonic())
    outbox.put(_messages("b"), monotonic() + 30, claimed_at=monotonic())
    with pytest.raises(ZeroDivisionError):
        await outbox.drain()
    told.failure = None
    outbox.put(_messages("b", "c"), 0, claimed_at=monotonic())
    assert await outbox.drain() == {"queued": 2}
