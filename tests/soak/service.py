"""What the arq and the Celery service under soak share: the jobs, the ledger, and what tells it of leases and ends."""

from __future__ import annotations

import logging
import sys

import slotqueue.guard
from slotqueue import SlotQueue
from slotqueue.answers import Run, Word
from slotqueue.current import current_slot
from slotqueue.events import Event, SlotClaimed
from slotqueue.guard_events import RunDone, RunFailed, RunPostponed
from slotqueue.heartbeat import Lease
from slotqueue.protocols import Enqueuer
from tests.soak.bugs import plant
from tests.soak.ledger import Ledger
from tests.soak.orders import JOBS, Orders, SoakJob

orders = Orders.of_this_process()
ledger = Ledger(orders.ledger, orders.name)
plant(orders.bugs)
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
jobs = tuple(job for job in JOBS if orders.version in job.versions)

_WORDS = {SlotClaimed: "claimed", RunDone: "done", RunPostponed: "postponed", RunFailed: "failed"}


def _tell(event: Event) -> None:
    if (word := _WORDS.get(type(event))) is not None:
        ledger.write(word, event.key)  # type: ignore[attr-defined] # each of them has one


class _ToldLease(Lease):
    """Writes into the ledger until when this process may be sure of its lease."""

    def __init__(self, run: Run, sent_at: float) -> None:
        super().__init__(run, sent_at)
        self._write()

    def take(self, answer: Word, sent_at: float) -> None:
        super().take(answer, sent_at)
        if answer is Word.YES:
            self._write()

    def _write(self) -> None:
        ledger.write("leased", self.run.slip.key, fence=self.run.fence, until=self.good_until)


setattr(slotqueue.guard, "Lease", _ToldLease)  # noqa: B010 - the seam of this service


def build(enqueuer: Enqueuer) -> SlotQueue:
    """The service's SlotQueue, with its jobs."""
    slots = SlotQueue(
        orders.url,
        enqueuer=enqueuer,
        replica=orders.name,
        sweep_every=0.5,
        replicas_to_ack=orders.replicas_to_ack,
        on_event=_tell,
    )
    for job in jobs:
        slots.add(job.name, job.schedule, task=f"soak.{job.name}", **orders.policy(job))
    return slots


def began(job: SoakJob) -> tuple[str, int]:
    """Write that the function of the current slot begins; returns what `ended` wants."""
    slot = current_slot()
    assert slot.job == job.name, f"{slot.key} ran as {job.name}"
    ledger.write("began", slot.key, fence=slot.fence, attempt=slot.attempt)
    return slot.key, slot.fence


def ended(run: tuple[str, int]) -> None:
    """Write that the function has ended, and well."""
    key, fence = run
    ledger.write("ended", key, fence=fence)
