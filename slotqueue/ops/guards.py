"""What `check` finds about workers: whether they are guarded, there, and where the messages go. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from slotqueue.enqueuers.inprocess import InProcessEnqueuer
from slotqueue.jobs import Job
from slotqueue.ops.findings import Finding, Severity
from slotqueue.ops.silence import SILENT_MS, is_silent
from slotqueue.protocols import Enqueuer
from slotqueue.slots import SlotState
from slotqueue.store.readings import ProcessSeen, SlotKept
from slotqueue.words import count, did_you_mean, duration, instant


@runtime_checkable
class Aimed(Protocol):
    """An enqueuer that can say where it sends."""

    place: str
    """Its Redis or broker: "host:port/database"; "" where it cannot tell."""

    def queue_of(self, job: Job) -> str | None:
        """Name the queue that a job is sent to; None where it cannot tell."""
        ...


def check_guards(
    jobs: Collection[Job], tasks: Mapping[str, int], now: int, workers: Sequence[ProcessSeen] = ()
) -> list[Finding]:
    """Tasks that no guarded worker has: a slip of the pen where such workers are known, unguarded workers otherwise.

    Args:
        jobs: of the application.
        tasks: of all guarded workers, with their worker system -> when one of these was last seen, ms.
        now: Redis's time, ms.
        workers: what is known of them: they name tasks of theirs that cannot be guarded.
    """
    bypassing = _past_the_guard(tasks, workers, now)
    findings: list[Finding | None] = [
        _bypassing(job, bypassing[job.task_name]) for job in jobs if job.task_name in bypassing
    ]
    jobs = [job for job in jobs if job.task_name not in bypassing]
    for kind in dict.fromkeys(job.enqueuer for job in jobs):
        if kind == InProcessEnqueuer.kind:  # the replica that wins is its worker
            continue
        mine = [job for job in jobs if job.enqueuer == kind]
        known = [task.partition(":")[2] for task in tasks if task.startswith(f"{kind}:")]
        if known:
            findings += [_check_guard(job, known, tasks.get(job.task_name), now) for job in mine]
        else:
            findings.append(_unguarded(kind, mine))
    return [finding for finding in findings if finding is not None]


def check_overlaps(jobs: Collection[Job], tasks: Mapping[str, int]) -> list[Finding]:
    """Jobs whose slots must not overlap, and nobody says when one has ended."""
    text = (
        "no guarded worker has its task, so nobody reports when a slot has ended, and `overlap` keeps no two apart: "
        "guard its workers, or let the task itself see to it"
    )
    return [
        Finding(Severity.WARNING, f"job {job.name!r}", text)
        for job in jobs
        if not job.terms.may_overlap and job.task_name not in tasks
    ]


def check_aims(
    jobs: Collection[Job], enqueuers: Mapping[str, Enqueuer], workers: Sequence[ProcessSeen]
) -> list[Finding]:
    """Messages that go where no known worker listens: another queue, or another Redis."""
    findings = []
    for job in jobs:
        enqueuer = enqueuers[job.enqueuer]
        known = [each.about for each in workers if each.about.get("worker") == job.enqueuer and _queues_of(each.about)]
        queue = enqueuer.queue_of(job) if known and isinstance(enqueuer, Aimed) else None
        if queue is None or not isinstance(enqueuer, Aimed):
            continue
        about, is_arq = f"job {job.name!r}", job.enqueuer == "arq"
        places = {_place_of(each) for each in known if queue in _queues_of(each)}
        if not places:
            names = ", ".join(sorted({repr(name) for each in known for name in _queues_of(each)}))
            hint = (
                "give the job's `queue`, the enqueuer's `queue_name` or the worker's `queue_name` the same name"
                if is_arq
                else f"start a worker with -Q {queue}, or say another `queue` for the job or in task_routes"
            )
            text = f"no known worker listens on the queue {queue!r} that the job is sent to (workers listen on {names})"
            findings.append(Finding(Severity.PROBLEM, about, f"{text}: {hint}"))
        elif all(_is_elsewhere(enqueuer.place, place) for place in places):
            text = (
                f"it is sent to {enqueuer.place}, and the workers on the queue {queue!r} listen at "
                f"{', '.join(sorted(places))}: is that the same {'Redis and database' if is_arq else 'broker'}?"
            )
            findings.append(Finding(Severity.WARNING, about, text))
    return findings


def check_queued(open_slots: Sequence[SlotKept], now: int) -> list[Finding]:
    """Slots that the queue accepted and nobody has begun within the job's `done_within`."""
    late = [
        kept.key
        for kept in open_slots
        if kept.record is not None
        and kept.record.state is SlotState.QUEUED
        and 0 < kept.record.terms.done_within < now - kept.record.numbers.fire
    ]
    if not late:
        return []
    them = "it" if len(late) == 1 else "them"
    text = (
        f"{count(len(late), 'slot')} should be done by now, and no worker has begun {them} ({min(late)}, for example): "
        "are workers up, and on the right queue?"
    )
    return [Finding(Severity.WARNING, "workers", text)]


def check_workers_alone(tasks: Mapping[str, int], now: int) -> list[Finding]:
    """Whether any guarded worker is there, where no application says which tasks there are."""
    if not tasks:
        text = f"no guarded worker is known in this namespace{_cause('arq')}"
        return [Finding(Severity.WARNING, "workers", text)]
    newest = max(tasks.values())
    if is_silent(newest, now):
        return [Finding(Severity.WARNING, "workers", f"the last guarded worker was seen {duration(now - newest)} ago")]
    return []


def _check_guard(job: Job, known: Collection[str], seen: int | None, now: int) -> Finding | None:
    about = f"job {job.name!r}"
    if seen is None:
        hint = did_you_mean(job.task, known)
        text = (
            f"no guarded {job.enqueuer} worker has the task {job.task!r}: nobody would report on its slots; {hint}"
            f"{_cause(job.enqueuer, 'of its worker ') if not hint.startswith('did') else ''}"
        )
        return Finding(Severity.PROBLEM, about, text)
    if is_silent(seen, now):
        text = (
            f"the last guarded {job.enqueuer} worker with the task {job.task!r} was seen {duration(now - seen)} ago, "
            f"at {instant(seen)}: are its workers up? (They report every 20 s.)"
        )
        return Finding(Severity.WARNING, about, text)
    return None


def _unguarded(kind: str, jobs: Collection[Job]) -> Finding:
    sent = "its slots are sent once" if len(jobs) == 1 else "their slots are sent once"
    text = (
        f"no guarded {kind} worker is known for {count(len(jobs), 'job')}, so {sent} and nobody reports what became of "
        f"them{_cause(kind)}; let the workers register first, then start replicas"
    )
    return Finding(Severity.WARNING, "workers", text)


def _past_the_guard(tasks: Mapping[str, int], workers: Sequence[ProcessSeen], now: int) -> dict[str, str]:
    """Task -> why it cannot be guarded, as workers say that are there, or that were before a guarded one was seen."""
    found = {}
    for worker in workers:
        for task, why in _texts(worker.about.get("unguarded")).items():
            name = f"{worker.about.get('worker')}:{task}"
            if worker.seen >= min(now - SILENT_MS, tasks.get(name, 0)):
                found[name] = str(why)
    return found


def _bypassing(job: Job, why: str) -> Finding:
    text = (
        f"the task {job.task!r} goes past the guard ({why}), so its slots are sent once and nobody reports what became "
        "of them; give it another base class"
    )
    return Finding(Severity.WARNING, f"job {job.name!r}", text)


def _queues_of(about: Mapping[str, Any]) -> list[str]:
    """The queues that a worker says it listens to: one, or several."""
    said = about.get("queues", about.get("queue"))
    return [str(each) for each in said] if isinstance(said, list) else [str(said)] if said else []


def _place_of(about: Mapping[str, Any]) -> str:
    return str(about.get("redis") or about.get("broker") or "")


def _texts(said: object) -> Mapping[str, object]:
    return said if isinstance(said, dict) else {}


def _cause(kind: str, whose: str = "") -> str:
    if kind != "arq":
        return ": no worker was started yet, or the workers are not connected to this SlotQueue"
    return f": no worker was started yet, or the settings class {whose}lacks `@slots.worker`"


def _is_elsewhere(one: str, other: str) -> bool:
    """Whether port or database differ. Hosts have many names, so these alone say nothing."""
    (place, database), (other_place, other_database) = (each.rpartition("/")[::2] for each in (one, other))
    ports = [each.rpartition(":")[2] for each in (place, other_place) if ":" in each]
    return bool(place and other_place) and (database != other_database or (len(ports) == 2 and ports[0] != ports[1]))
