"""The verbs as commands: what to send, and how to read the answer. No input or output here."""

# ruff: noqa: ANN401 - a reply is anything until it is read
from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from slotqueue.answers import (
    Changes,
    Claims,
    Dropped,
    Gap,
    Known,
    Offer,
    Overdue,
    Registered,
    Run,
    Share,
    StoredEntry,
    Takeover,
    Verdict,
    Word,
    Written,
)
from slotqueue.messages import Refused, Slip, Waiting
from slotqueue.protocols import Command, Process
from slotqueue.slots import utc_ms
from slotqueue.store.keys import Keys

GRACE_MS = 10_000
"""How long a replica may take from claim to confirm before its slot is taken over."""
_LONGEST_ERROR = 1024
_VERDICTS = {word.value: Verdict(word) for word in Word}


class Commands:
    """Implements `slotqueue.protocols.Verbs` for one namespace."""

    def __init__(self, namespace: str) -> None:
        self.keys = Keys(namespace)
        self._shared = self.keys.shared

    def register(self, replica: Process, jobs: Sequence[Known], *, epoch: str, is_last: bool) -> Command[Registered]:
        """See `Verbs.register`."""
        args: list[str | int] = [epoch, replica.id, replica.about, int(is_last)]
        for job in jobs:
            args += (job.job, job.schedule_version, job.since, job.decided, job.schedule, job.about)

        def read(reply: Any) -> Registered:
            now, found, numbers, rank, size = reply
            pairs = zip(jobs, numbers[::2], numbers[1::2], strict=True)
            known = [Known(job.job, job.schedule_version, int(since), int(decided)) for job, since, decided in pairs]
            return Registered(int(now), found, known, Share(int(rank), int(size)) if size else None)

        words = ("epoch", "jobs", "decided", "replicas", "schedules", "about", "past")
        return Command("register", [self.keys.of(word) for word in words], args, read)

    def enlist(self, worker: Process) -> Command[int]:
        """See `Verbs.enlist`."""
        keys = [self.keys.of("workers"), self.keys.of("tasks")]
        return Command("enlist", keys, [worker.id, worker.about, *worker.tasks], int)

    def vouch(self, tasks: Sequence[str]) -> Command[int]:
        """See `Verbs.vouch`."""
        return Command("vouch", [self.keys.of("tasks")], list(tasks), int)

    def leave(self, process_id: str) -> Command[int]:
        """See `Verbs.leave`."""
        return Command("leave", [self.keys.of("replicas"), self.keys.of("workers")], [process_id], int)

    def own(self, app: str) -> Command[str]:
        """Say that the namespace is this application's; answers whose it is."""
        return Command("own", [self.keys.of("app")], [app], str)

    def claim(self, offers: Sequence[Offer], *, replica: str, epoch: str, ahead_ms: int = 0) -> Command[Claims]:
        """See `Verbs.claim`."""
        args: list[str | int] = [replica, epoch, GRACE_MS, ahead_ms]
        for shared, group in groupby(offers, _shared_by):
            versions = [offer.job.version for offer in group]
            args += (len(versions), *shared, *versions)
        keys = self._keys_of([offer.slot.key for offer in offers])
        return Command("claim", keys, args, _read_claims)

    def taken(self, keys: Sequence[str]) -> Command[int]:
        """See `Verbs.taken`."""
        return Command("taken", list(keys), [], int)

    def miss(self, gaps: Sequence[Gap], *, replica: str, epoch: str) -> Command[list[int]]:
        """See `Verbs.miss`."""
        keys = [
            *(self.keys.of(word) for word in ("epoch", "decided", "gaps", "counts")),
            *(self.keys.missed(gap.job.name) for gap in gaps),
        ]
        args: list[str | int] = [replica, epoch]
        for gap in gaps:
            args += (gap.job.name, gap.after, gap.until, gap.slots or 0, gap.job.terms.history, gap.why)
        return Command("miss", keys, args, lambda reply: [int(each) for each in reply])

    def letters(self, after: int, limit: int) -> Command[list[tuple[str, int]]]:
        """See `Verbs.letters`."""

        def read(reply: Any) -> list[tuple[str, int]]:
            return [(key, int(float(at))) for key, at in zip(reply[::2], reply[1::2], strict=True)]

        return Command("letters", [self.keys.of("dead"), self.keys.of("letters")], [after, limit], read)

    def told(self, keys: Sequence[str]) -> Command[list[tuple[str, str, str]]]:
        """See `Verbs.told`."""
        return Command(
            "told", [self.keys.record(key) for key in keys], [], lambda reply: [tuple(each) for each in reply]
        )

    def confirm(self, slips: Sequence[Slip]) -> Command[list[Verdict]]:
        """See `Verbs.confirm`."""
        return Command("confirm", self._keys_of([slip.key for slip in slips]), [slip.n for slip in slips], _verdicts)

    def release(self, refusals: Sequence[tuple[Slip, Refused]]) -> Command[list[Verdict]]:
        """See `Verbs.release`."""
        args: list[str | int] = []
        for slip, refused in refusals:
            args += (slip.n, int(refused.is_sent_possible), refused.problem[:_LONGEST_ERROR])
        return self._batch("release", [slip.key for slip, _ in refusals], args)

    def overdue(self, limit: int) -> Command[Overdue]:
        """See `Verbs.overdue`."""

        def read(reply: Any) -> Overdue:
            now, keys, number = reply
            return Overdue(int(now), list(keys), int(number))

        return Command("overdue", [self.keys.of("open")], [limit], read)

    def take_over(
        self, keys: Sequence[str], tasks: Sequence[str], *, replica: str, contact_ms: int
    ) -> Command[list[Takeover]]:
        """See `Verbs.take_over`."""

        def read(reply: Any) -> list[Takeover]:
            return [_takeover(key, answer) for key, answer in zip(keys, reply, strict=True)]

        return Command("take_over", self._keys_of(keys), [replica, contact_ms, GRACE_MS, *tasks], read)

    def open_keys(self, offset: int, limit: int) -> Command[list[str]]:
        """See `Verbs.open_keys`."""
        return Command("open_keys", [self.keys.of("open")], [offset, offset + limit - 1], list)

    def waiting(self, keys: Sequence[str]) -> Command[list[Waiting]]:
        """See `Verbs.waiting`."""

        def read(reply: Any) -> list[Waiting]:
            return [Waiting(key, state, int(n), task) for key, state, n, task in reply]

        return Command("waiting", [self.keys.record(key) for key in keys], list(keys), read)

    def begin(self, slip: Slip, *, token: str, worker: str, from_fence: str | int) -> Command[Run | Dropped]:
        """See `Verbs.begin`."""

        def read(reply: Any) -> Run | Dropped:
            if reply[0] != "run":
                return Dropped(Word(reply[0]), reply[1] if len(reply) > 1 else "")
            _, fence, attempt, terms, *waited = reply
            granted = Slip(slip.key, slip.n, slip.fire, slip.start, slip.task, slip.version, terms)
            return Run(granted, int(fence), token, worker, int(attempt), int(waited[0]) if waited else None)

        args = [token, worker, from_fence, *_said(slip)]
        return Command("begin", self._keys_of([slip.key]), args, read)

    def heartbeat(self, runs: Sequence[Run]) -> Command[list[Verdict]]:
        """See `Verbs.heartbeat`."""
        args: list[str | int] = []
        for run in runs:
            args += (run.fence, run.token, run.worker, *_said(run.slip))
        return self._batch("heartbeat", [run.slip.key for run in runs], args)

    def finish(self, run: Run) -> Command[Verdict]:
        """See `Verbs.finish`."""
        return self._one("finish", run.slip.key, [run.fence, run.worker, *_said(run.slip)])

    def postpone(self, run: Run, delay_ms: int, why: str, *, is_message_gone: bool = False) -> Command[Verdict]:
        """See `Verbs.postpone`."""
        return self._one("postpone", run.slip.key, [run.fence, max(0, delay_ms), why, int(is_message_gone)])

    def fail(self, run: Run, error: str) -> Command[Verdict]:
        """See `Verbs.fail`."""
        return self._one("fail", run.slip.key, [run.fence or "", run.token, error[:_LONGEST_ERROR]])

    def reject(self, key: str, n: int, why: str) -> Command[Verdict]:
        """See `Verbs.reject`."""
        return self._one("reject", key, [n, why[:_LONGEST_ERROR]])

    def put(self, job: str, text: str, schedule_version: str, *, expected: int | None) -> Command[Written]:
        """See `Verbs.put`."""
        args = [job, "" if expected is None else expected, schedule_version, text]
        return Command("put", [*self._of_stored_jobs, self.keys.of("jobs"), self.keys.of("past")], args, _written)

    def remove(self, job: str, *, expected: int | None) -> Command[Written]:
        """See `Verbs.remove`."""
        keys = [*self._of_stored_jobs, self.keys.of("jobs"), self.keys.of("past")]
        return Command("remove", keys, [job, "" if expected is None else expected], _written)

    def changes(self, known: int, *, epoch: str, limit: int) -> Command[Changes | None]:
        """See `Verbs.changes`."""
        return Command("changes", [*self._of_stored_jobs, self.keys.of("epoch")], [known, epoch, limit], _changes)

    def restore(self, entries: Sequence[StoredEntry]) -> Command[int]:
        """See `Verbs.restore`."""
        return Command(
            "restore", self._of_stored_jobs, [word for each in entries for word in (each.job, each.raw)], int
        )

    @property
    def _of_stored_jobs(self) -> list[str]:
        return [self.keys.of("stored"), self.keys.of("changes")]

    def _keys_of(self, keys: Sequence[str]) -> list[str]:
        return [*self._shared, *keys]

    def _one(self, verb: str, key: str, args: list[str | int]) -> Command[Verdict]:
        return Command(verb, self._keys_of([key]), args, _verdict)

    def _batch(self, verb: str, keys: Sequence[str], args: list[str | int]) -> Command[list[Verdict]]:
        return Command(verb, self._keys_of(keys), args, lambda reply: [_verdict(each) for each in reply])


def _shared_by(offer: Offer) -> tuple[str | int, ...]:
    """What the slots of a burst have in common, so that it is sent once."""
    job, slot = offer
    return (utc_ms(slot.fire_time), utc_ms(slot.start), job.task_name, job.terms_text)


def _said(slip: Slip) -> tuple[str | int, ...]:
    """What a message says of its slot, in the order of `slip_at` in record.lua."""
    return (slip.n, slip.fire, slip.start, slip.task, slip.version, slip.terms)


def _verdict(answer: Any) -> Verdict:
    if isinstance(answer, str):
        return _VERDICTS[answer]
    return Verdict(Word(answer[0]), answer[1])


def _verdicts(reply: Any) -> list[Verdict]:
    """Read what `say` in record.lua makes of the answers about a batch: how often, and what, again and again."""
    verdicts: list[Verdict] = []
    for times, answer in zip(reply[::2], reply[1::2], strict=True):
        verdicts += [_verdict(answer)] * times
    return verdicts


def _read_claims(reply: Any) -> Claims:
    exact_now = int(reply[0]) / 1000
    if not reply[1]:
        return Claims(exact_now, is_same_epoch=False, verdicts=[])
    return Claims(exact_now, is_same_epoch=True, verdicts=_verdicts(reply[2]))


def _written(reply: Any) -> Written:
    return Written(bool(reply[0]), int(reply[1]))


def _changes(reply: Any) -> Changes | None:
    if not reply:
        return None
    since, version, count, is_more, words = reply
    entries = [StoredEntry.parse(job, entry) for job, entry in zip(words[::2], words[1::2], strict=True)]
    return Changes(int(since), int(version), int(count), not is_more, entries)


def _takeover(key: str, answer: Any) -> Takeover:
    word = Word(answer[0])
    if word is not Word.ENQUEUE:
        return Takeover(key, word, answer[1])
    before, n, fire, start, task, version, terms = answer[1:]
    slip = Slip(key, int(n), int(fire), int(start), task, version, terms)
    return Takeover(key, word, before=before, slip=slip)
