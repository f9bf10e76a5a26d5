"""A replica's work done by hand, step by step, in the test's own process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from slotqueue.answers import Known, Offer, Run, Word
from slotqueue.dispatch import message_for
from slotqueue.jobs import Job
from slotqueue.messages import Message, Slip
from slotqueue.policy import Policy
from slotqueue.protocols import ANY_FENCE, Process
from slotqueue.schedules import Every
from slotqueue.slots import Slot, from_ms, key_at, to_ms
from slotqueue.store import BlockingStore


class Hand:
    """A replica without a loop; it vanishes after whatever step the test leaves out.

    Args:
        url: the coordinating Redis.
    """

    def __init__(self, url: str, *, namespace: str = "ran") -> None:
        self.namespace = namespace
        self.store = BlockingStore(url, namespace)
        self.me = Process("by-hand")
        registered = self.store.run(self.store.verbs.register(self.me, [], epoch="by-hand", is_last=True))
        self.epoch = registered.epoch

    def close(self) -> None:
        self.store.close()

    def job(
        self,
        name: str,
        every: timedelta,
        *,
        task: str = "quick",
        kwargs: Mapping[str, Any] | None = None,
        **policy: Any,
    ) -> Job:
        """A job as the fleet's application knows it."""
        return Job(
            name=name,
            schedule=Every(every),
            task=task,
            kwargs=kwargs or {},
            enqueuer="arq",
            policy=Policy(**{"on_crash": "complete", "lease": 30, **policy}),
            period=every,
        )

    def know(self, job: Job) -> None:
        """Register a job."""
        known = [Known(job.name, job.schedule_version)]
        self.store.run(self.store.verbs.register(self.me, known, epoch="by-hand", is_last=True))

    def latest(self, job: Job, count: int = 1) -> list[datetime]:
        """The newest fire times of a job, oldest first."""
        now = from_ms(self.store.run(self.store.verbs.overdue(1)).now)
        newest = job.schedule.latest_at(now)
        return [newest - job.period * i for i in reversed(range(count))]

    def offer(self, job: Job, fire_times: Sequence[datetime], *, replica: str = "") -> list[Word]:
        """Claim slots; how it went for each."""
        offers = [Offer(job, slot) for slot in self._slots(job, fire_times)]
        me = replica or self.me.id
        claims = self.store.run(self.store.verbs.claim(offers, replica=me, epoch=self.epoch))
        return [verdict.word for verdict in claims.verdicts]

    def claim(self, job: Job, fire_times: Sequence[datetime]) -> list[Message]:
        """Win slots; the messages that are to be enqueued."""
        assert set(self.offer(job, fire_times)) == {Word.WON}
        return [
            message_for(
                job,
                Slip(slot.key, 0, to_ms(slot.fire_time), to_ms(slot.start), job.task_name, job.version, job.terms.text),
            )
            for slot in self._slots(job, fire_times)
        ]

    def _slots(self, job: Job, fire_times: Sequence[datetime]) -> list[Slot]:
        return [Slot(key_at(self.namespace, job.name, at), job.name, at, at - job.period) for at in fire_times]

    def confirm(self, messages: Sequence[Message]) -> list[Word]:
        """Say that the queue has them."""
        verdicts = self.store.run(self.store.verbs.confirm([message.slip for message in messages]))
        return [verdict.word for verdict in verdicts]

    def begin(self, slip: Slip, *, token: str = "token") -> Run:
        """Begin a slot, as a worker."""
        run = self.store.run(self.store.verbs.begin(slip, token=token, worker="by-hand", from_fence=ANY_FENCE))
        assert isinstance(run, Run)
        return run

    def finish(self, run: Run) -> None:
        """Finish a run."""
        assert self.store.run(self.store.verbs.finish(run)).word is Word.YES
