"""A queue with workers, simulated: what they tell the store is real, the functions are a while that passes.

A message whose worker died comes again, as arq and late-acking brokers have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count

from slotqueue.answers import Run, Word
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Slip, Waiting
from slotqueue.protocols import ANY_FENCE, Store
from slotqueue.testing.agenda import Action, Agenda
from slotqueue.testing.ledger import Book
from slotqueue.testing.steps import Died, Step

BUSY_MS = 30_000
"""How long a message waits that finds its slot being run."""
TRAVEL_MS = 5
"""From the enqueue to a worker's hand."""
REDELIVERED_AFTER_MS = 310_000
"""When the message of a dead worker comes again: arq's in-progress key, with its default time limit."""


class SimulatedQueue:
    """Implements `slotqueue.protocols.Enqueuer`, and is the workers as well; there are always enough.

    Args:
        kind: of the enqueuer that it stands for.
        store: where the workers begin and finish.
        agenda: where the runs go on.
        book: counts messages and runs, and says who dies.
        takes_ms: how long a function runs.
    """

    def __init__(self, kind: str, store: Store, agenda: Agenda, book: Book, takes_ms: int) -> None:
        self.kind = kind
        self._store = store
        self._agenda = agenda
        self._book = book
        self._takes_ms = takes_ms
        self._numbers = count(1)

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`: the job's own enqueuer has checked it."""

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`; the replica may die before or behind it."""
        self._strike(messages, Step.CLAIMED)
        for message in messages:
            self._book.of(message.slip.key).enqueues += 1
            self._agenda.after(TRAVEL_MS, partial(self._deliver, message.slip))
        self._strike(messages, Step.ENQUEUED)
        return [Accepted()] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:  # noqa: ARG002 - as the protocol has it
        """See `Enqueuer.given_up`: nothing is."""
        return {}

    async def close(self) -> None:
        """See `Enqueuer.close`."""

    def _strike(self, messages: Sequence[Message], step: Step) -> None:
        for message in messages:
            if self._dies(message.slip, step):
                raise Died

    def _dies(self, slip: Slip, step: Step) -> bool:
        return self._book.strikes.at(self._book.of(slip.key).slot, step)

    # ---- a worker

    async def _deliver(self, slip: Slip) -> None:
        again = partial(self._deliver, slip)
        if self._dies(slip, Step.TAKEN):
            self._agenda.after(REDELIVERED_AFTER_MS, again)
            return
        worker = f"worker-{next(self._numbers)}"
        begin = self._store.verbs.begin(slip, token=worker, worker=worker, from_fence=ANY_FENCE)
        answer = await self._store.run(begin)
        if isinstance(answer, Run):
            self._run(answer, again)
        elif answer.why is Word.BUSY:
            self._agenda.after(BUSY_MS, again)

    def _run(self, run: Run, again: Action) -> None:
        """Let the function run for a while, with a heartbeat each third of the lease."""
        slip, beat_ms = run.slip, max(1, run.terms.lease // 3)
        if self._dies(slip, Step.BEGUN):
            self._agenda.after(REDELIVERED_AFTER_MS, again)
            return
        self._book.of(slip.key).runs += 1
        is_dying = self._dies(slip, Step.RUNNING)
        lasts_ms = self._takes_ms // 2 if is_dying else self._takes_ms
        for at in range(beat_ms, lasts_ms, beat_ms):
            self._agenda.after(at, partial(self._beat, run))
        if is_dying:
            self._agenda.after(lasts_ms + REDELIVERED_AFTER_MS, again)
        else:
            self._agenda.after(lasts_ms, partial(self._end, run, again))

    async def _beat(self, run: Run) -> None:
        await self._store.run(self._store.verbs.heartbeat([run]))

    async def _end(self, run: Run, again: Action) -> None:
        if self._dies(run.slip, Step.RETURNED) or self._dies(run.slip, Step.FINISH_UNSENT):
            self._agenda.after(REDELIVERED_AFTER_MS, again)
            return
        await self._store.run(self._store.verbs.finish(run))
        if self._dies(run.slip, Step.FINISH_UNHEARD):
            self._agenda.after(REDELIVERED_AFTER_MS, again)
