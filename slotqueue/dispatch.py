"""From a claim to the queue: enqueue, then confirm or release. Shared by ticker and sweeper.

The order is the protocol's: nothing is confirmed that the queue did not accept, and a slot that was not confirmed in
time is taken over by a sweep under the same id.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from slotqueue.answers import Verdict, Word
from slotqueue.errors import StoreUnavailable
from slotqueue.events import ConfirmStale, Emit, EnqueueRefused, SlotBroken, SlotEnqueued, TaskUnguarded, is_heard
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, NotBefore, Refused, Slip
from slotqueue.protocols import Command, Enqueuer, Store
from slotqueue.slots import parse_key

ENQUEUE_SECONDS = 8.0
"""An enqueuer that takes longer is not waited for: the slot's grace of 10 s must not pass meanwhile."""
_ASK_AGAIN_SECONDS = (0.1, 0.5, 1.0)


def message_for(job: Job, slip: Slip, before: str = "", not_before: NotBefore | None = None) -> Message:
    """The message of a slot, with the arguments of the job as this replica knows it."""
    return Message(slip, job.task, job.args, job.kwargs, job.queue, before, job.options, not_before)


class Dispatcher:
    """Puts messages on their queues and tells the store.

    Args:
        store: the coordinating Redis.
        enqueuers: by kind.
        emit: takes events.
    """

    def __init__(self, store: Store, enqueuers: Mapping[str, Enqueuer], emit: Emit) -> None:
        self.store = store
        self.enqueuers = enqueuers
        self.emit = emit
        self.guarded: set[str] = set()
        """Tasks that the store follows, as far as this replica has sent any; it tells a Redis that has forgotten."""
        self._unguarded: set[str] = set()

    def ahead_seconds(self, kind: str) -> float:
        """How long before their time an enqueuer wants its messages; 0.0 for one that is to get them in time."""
        ahead: float = getattr(self.enqueuers.get(kind), "ahead_seconds", 0.0)
        return ahead

    async def send(self, messages: Sequence[Message], doubt: str = "") -> Counter[str]:
        """Enqueue messages and confirm or release their slots.

        Args:
            messages: one a slot that this replica won or took over.
            doubt: why that may be lost yet; then nothing is enqueued, and the slots are released to be tried again.

        Returns:
            How many were queued, sent, refused, stale or broken.

        Raises:
            StoreUnavailable: the store did not take the confirmations; the sweep will see to these slots.
        """
        return await self.confirm(messages, await self.enqueue(messages, doubt))

    async def enqueue(
        self, messages: Sequence[Message], doubt: str = "", *, within: float = ENQUEUE_SECONDS
    ) -> Sequence[Delivery]:
        """The first half of `send`; its answers are what the second needs.

        Args:
            messages: as `send`.
            doubt: as `send`.
            within: seconds for all of it; where none are left nothing is enqueued, since a sweep may be as far by then.
        """
        if not doubt and within <= 0:
            doubt = "its turn came too late: the queue is slow"
        return [Refused(doubt)] * len(messages) if doubt else await self._enqueue(messages, within)

    async def confirm(self, messages: Sequence[Message], answers: Sequence[Delivery]) -> Counter[str]:
        """The second half of `send`: tell the store what the queues answered.

        Raises:
            StoreUnavailable: as `send`.
        """
        accepted = [
            message.slip for message, answer in zip(messages, answers, strict=True) if isinstance(answer, Accepted)
        ]
        refused = [
            (message.slip, answer)
            for message, answer in zip(messages, answers, strict=True)
            if isinstance(answer, Refused)
        ]
        counts: Counter[str] = Counter()
        if accepted:
            verdicts = await self._ask(self.store.verbs.confirm(accepted))
            is_success_heard = is_heard(self.emit, SlotEnqueued)
            for slip, verdict in zip(accepted, verdicts, strict=True):
                self._report(slip, verdict, is_success_heard=is_success_heard)
            counts += Counter(verdict.word for verdict in verdicts)
        if refused:
            for slip, answer in refused:
                self.emit(EnqueueRefused(slip.key, _job_of(slip), slip.n, answer.problem))
            counts["refused"] += len(refused)
            await self._ask(self.store.verbs.release(refused))
        return counts

    async def _enqueue(self, messages: Sequence[Message], within: float) -> list[Delivery]:
        """Ask each enqueuer once for all of its messages; answers in the order of `messages`."""
        kinds = {message.slip.task.partition(":")[0] for message in messages}
        if len(kinds) == 1:
            return list(await self._enqueue_at(kinds.pop(), messages, within))
        by_kind: dict[str, list[int]] = {}
        for place, message in enumerate(messages):
            by_kind.setdefault(message.slip.task.partition(":")[0], []).append(place)
        answers: dict[int, Delivery] = {}
        for kind, places in by_kind.items():
            group = [messages[i] for i in places]
            answers.update(zip(places, await self._enqueue_at(kind, group, within), strict=True))
        return [answers[place] for place in range(len(messages))]

    async def _enqueue_at(self, kind: str, group: Sequence[Message], within: float) -> Sequence[Delivery]:
        enqueuer = self.enqueuers.get(kind)
        if enqueuer is None:
            return [Refused(f"this replica has no enqueuer of the kind {kind!r}")] * len(group)
        try:
            async with asyncio.timeout(within):
                answers = list(await enqueuer.enqueue(group))
        except TimeoutError:
            problem = Refused(f"the enqueuer did not answer within {within:.0f} s", is_sent_possible=True)
            return [problem] * len(group)
        except Exception as error:  # noqa: BLE001 - an enqueuer may be anybody's code; its failure is these slots' answer only
            return [Refused(f"{type(error).__name__}: {error}", is_sent_possible=True)] * len(group)
        if len(answers) != len(group):
            problem = Refused(f"the enqueuer answered {len(answers)} of {len(group)} messages", is_sent_possible=True)
            return [problem] * len(group)
        return [answer if isinstance(answer, (Accepted, Refused)) else _unclear(answer) for answer in answers]

    async def _ask(self, command: Command[list[Verdict]]) -> list[Verdict]:
        """Send a batch, again where it failed: the verbs bear it."""
        for seconds in _ASK_AGAIN_SECONDS:
            try:
                return await self.store.run(command)
            except StoreUnavailable:
                await asyncio.sleep(seconds)
        return await self.store.run(command)

    def _report(self, slip: Slip, verdict: Verdict, *, is_success_heard: bool) -> None:
        word = verdict.word
        if word is Word.QUEUED or word is Word.SENT:
            is_guarded = word is Word.QUEUED
            if is_success_heard:
                self.emit(SlotEnqueued(slip.key, _job_of(slip), slip.n, is_guarded=is_guarded))
            if is_guarded:
                self.guarded.add(slip.task)
                self._unguarded.discard(slip.task)
            elif slip.task not in self._unguarded:
                self.guarded.discard(slip.task)
                self._unguarded.add(slip.task)
                self.emit(TaskUnguarded(slip.task, _job_of(slip)))
        elif word is Word.BROKEN:
            self.emit(SlotBroken(slip.key, _job_of(slip), verdict.detail))
        else:
            self.emit(ConfirmStale(slip.key, _job_of(slip)))


def _job_of(slip: Slip) -> str:
    return parse_key(slip.key).job


def _unclear(answer: object) -> Refused:
    """Take None, False and the like, which some queues answer, for no acceptance."""
    return Refused(f"the enqueuer answered {answer!r}, which is neither Accepted nor Refused", is_sent_possible=True)
