"""The one heartbeat thread of a worker process: it renews the leases of all running slots and says that we are here.

It has a connection of its own, so that a job which blocks the event loop keeps its lease. A lease is judged by this
process's monotonic clock, from the sending of the last heartbeat that was answered: never later than Redis judges it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from time import monotonic

from slotqueue.answers import Run, Word
from slotqueue.errors import SlotQueueError, StoreUnavailable
from slotqueue.events import Emit, PassFailed
from slotqueue.guard_events import HeartbeatBack, HeartbeatTroubled, WorkerEnlisted
from slotqueue.protocols import Process, SyncStore

ENLIST_SECONDS = 20.0
_LONGEST_PAUSE = 1.0
STOP_SECONDS = 5.0


class Lease:
    """A run's hold on its slot, as this process judges it.

    Args:
        run: what begin granted.
        sent_at: when the begin was sent, by the monotonic clock.
    """

    def __init__(self, run: Run, sent_at: float) -> None:
        self.run = run
        self.seconds = run.terms.lease / 1000
        self.good_until = sent_at + self.seconds
        self.due_at = sent_at + self.seconds / 3
        """When to ask for it again."""
        self.on_stale: Callable[[], None] | None = None
        """Called in the heartbeat thread when the slot is somebody else's."""
        self.on_expired: Callable[[], None] | None = None
        """Called once, in the heartbeat thread, when it could not be renewed in time."""

    def left(self) -> float:
        """Seconds until nobody can be sure of it any more; negative once past."""
        return self.good_until - monotonic()

    def take(self, answer: Word, sent_at: float) -> None:
        """Take in what a heartbeat was answered."""
        self.due_at = sent_at + self.seconds / 3
        if answer is Word.YES:
            self.good_until = max(self.good_until, sent_at + self.seconds)
        elif answer is Word.STALE and self.on_stale is not None:
            self.on_stale()

    def expire(self) -> None:
        """Say so, once, where it has passed."""
        if self.on_expired is not None and self.left() <= 0:
            expired, self.on_expired = self.on_expired, None
            expired()


class Heartbeat:
    """Renews every watched lease each third of it, all in one round trip, and enlists the worker every 20 s.

    Args:
        worker: who we are.
        open_store: makes the thread's own connection; called in the thread, after any fork.
        emit: told what happens.
    """

    def __init__(self, worker: Process, open_store: Callable[[], SyncStore], emit: Emit) -> None:
        self.worker = worker
        self._open_store = open_store
        self._emit = emit
        self._reset()

    def start(self) -> None:
        """Enlist the worker from now on; returns at once, also while Redis is away."""
        self._ensure()
        with self._changed:
            self._is_enlisting = True
            self._changed.notify()

    def watch(self, lease: Lease) -> None:
        """Renew a lease from now on."""
        self._ensure()
        with self._changed:
            self._leases[lease.run.token] = lease
            self._changed.notify()

    def forget(self, lease: Lease) -> None:
        """Renew a lease no longer."""
        with self._changed:
            self._leases.pop(lease.run.token, None)

    def stop(self, within: float = STOP_SECONDS) -> None:
        """Say that the worker leaves, and end the thread; takes so many seconds at most."""
        thread = self.let_go()
        if thread is not None:
            thread.join(within)
            if not thread.is_alive():
                self._reset()

    def let_go(self) -> threading.Thread | None:
        """Say that the worker leaves, and end the thread; returns at once, with the thread if there is one."""
        thread = self._thread
        if thread is None or self._pid != os.getpid():
            return None
        changed = self._changed
        with changed:
            self._is_stopping = True
            changed.notify()
        return thread

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._leases: dict[str, Lease] = {}
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._is_stopping = self._is_enlisting = self._is_troubled = False
        self._enlisted_at: float | None = None

    def _ensure(self) -> None:
        """Start the thread, in a forked child a new one: threads and locks do not survive a fork."""
        if self._pid != os.getpid():
            self._reset()
        with self._changed:
            if self._thread is None:
                name = f"slotqueue heartbeat {self.worker.id}"
                self._thread = threading.Thread(target=self._live, args=(self._changed,), name=name, daemon=True)
                self._thread.start()

    def _live(self, changed: threading.Condition) -> None:
        """Beat until stopped. Nothing may end this thread: every run would silently lose its lease."""
        store: SyncStore | None = None
        pause = 0.0
        while self._wait(changed, pause):
            try:
                store = store or self._open_store()
                self._beat(store)
                self._enlist(store)
                pause = 0.0
            except Exception as error:  # noqa: BLE001 - see above
                pause = self._trouble(error)
            self._expire()
        if store is not None:
            if self._enlisted_at is not None:
                with contextlib.suppress(SlotQueueError):
                    store.run(store.verbs.leave(self.worker.id))
            store.close()

    def _wait(self, changed: threading.Condition, pause: float) -> bool:
        """Wait until something is due, after trouble for `pause` seconds; False when it is time to stop."""
        with changed:
            if not self._is_stopping:
                now = monotonic()
                due = pause or min([self._enlist_in(), *(lease.due_at - now for lease in self._leases.values())])
                ends = [lease.good_until - now for lease in self._leases.values() if lease.on_expired is not None]
                wait = min([due, *ends])
                if wait > 0:
                    changed.wait(wait)
            return not self._is_stopping

    def _enlist_in(self) -> float:
        if not self._is_enlisting:
            return ENLIST_SECONDS
        return 0.0 if self._enlisted_at is None else self._enlisted_at + ENLIST_SECONDS - monotonic()

    def _beat(self, store: SyncStore) -> None:
        now = monotonic()
        with self._changed:
            leases = list(self._leases.values())
        if not any(lease.due_at <= now for lease in leases):
            return
        verdicts = store.run(store.verbs.heartbeat([lease.run for lease in leases]))
        for lease, verdict in zip(leases, verdicts, strict=True):
            lease.take(verdict.word, now)
        if self._is_troubled:
            self._is_troubled = False
            self._emit(HeartbeatBack(self.worker.id))

    def _expire(self) -> None:
        with self._changed:
            leases = list(self._leases.values())
        for lease in leases:
            lease.expire()

    def _enlist(self, store: SyncStore) -> None:
        if self._enlist_in() > 0:
            return
        store.run(store.verbs.enlist(self.worker))
        if self._enlisted_at is None:
            self._emit(WorkerEnlisted(self.worker.id, len(self.worker.tasks)))
        self._enlisted_at = monotonic()

    def _trouble(self, error: Exception) -> float:
        """Report the first of a row of errors; returns the seconds until the next try."""
        if not isinstance(error, StoreUnavailable):
            self._emit(PassFailed("heartbeat", f"{type(error).__name__}: {error}"))
        elif not self._is_troubled:
            self._emit(HeartbeatTroubled(self.worker.id, str(error)))
        self._is_troubled = True
        with self._changed:
            shortest = min((lease.seconds for lease in self._leases.values()), default=60.0)
        return min(shortest / 6, _LONGEST_PAUSE)
