"""The jobs that are stored in Redis, as this replica holds them: read once, then only what has changed.

One cheap question each 1.5 s tells whether anything has. What is held is always what is stored, or an older state of it
that is whole: where the numbers do not agree, everything is read anew. A job in code goes before a stored one of its
name. Should Redis lose its data, the jobs are brought back from here.
"""

from __future__ import annotations

from collections.abc import Callable

from slotqueue.answers import Changes, StoredEntry
from slotqueue.clock import RedisClock
from slotqueue.errors import ConfigurationError
from slotqueue.events import Emit, JobsChanged, JobShadowed, JobUnusable
from slotqueue.jobs import Job
from slotqueue.protocols import Store

_EVERY_SECONDS = 1.5
_PAGE = 500

Build = Callable[[StoredEntry], Job]
"""Makes a job of an entry; raises ConfigurationError where it cannot be run here."""


class StoredJobs:
    """Keeps this replica's plan of one mind with the jobs stored in Redis.

    Args:
        store: the coordinating Redis.
        build: makes jobs of entries; None to ask for none.
        clock: tells when to ask again.
        emit: takes events.
        plan: takes in a job, in place of one of its name.
        drop: forgets the job of a name, if there is one.
    """

    def __init__(
        self,
        store: Store,
        build: Build | None,
        clock: RedisClock,
        emit: Emit,
        *,
        plan: Callable[[Job], None],
        drop: Callable[[str], None],
    ) -> None:
        self.store = store
        self.build = build
        self.clock = clock
        self.emit = emit
        self.plan = plan
        self.drop = drop
        self._held: dict[str, StoredEntry] = {}
        self._in_code: set[str] = set()
        self._version = 0
        self._strays = 0  # jobs that are counted in Redis and listed nowhere: written by another hand
        self._asked_at = float("-inf")
        self._is_read = False

    @property
    def due_in(self) -> float:
        """Seconds until Redis is asked again, 0 or less for now."""
        if self.build is None:
            return float("inf")
        return self._asked_at + _EVERY_SECONDS - self.clock.monotonic()

    def hurry(self) -> None:
        """Ask again at once: what is held was found to be out of date."""
        self._asked_at = float("-inf")

    def distrust(self) -> None:
        """Ask for everything again: Redis may have gone back to an older state."""
        self._version = 0
        self.hurry()

    def yield_to_code(self, name: str) -> None:
        """Note that a job of this name is in code: it goes before a stored one."""
        self._in_code.add(name)
        if name in self._held:
            self.emit(JobShadowed(name))

    def take_from_code(self, name: str) -> None:
        """Note that no job of this name is in code any more: a stored one counts."""
        self._in_code.discard(name)
        if name in self._held:
            self._take_up(self._held[name])

    async def refresh(self, epoch: str) -> bool:
        """Learn what has changed, where it is time to ask.

        Args:
            epoch: names the data of the Redis that the replica has registered with.

        Returns:
            False where Redis holds other data by now: nothing was learned.

        Raises:
            StoreUnavailable: ask again; what is held stays.
        """
        if self.due_in > 0:
            return True
        changes = await self._ask(self._version, epoch)
        if changes is not None and changes.since and len(self._after(changes)) + self._strays != changes.stored:
            changes = await self._ask(0, epoch)
        if changes is None:
            return False
        self._apply(changes)
        self._strays = changes.stored - len(self._held)
        self._asked_at = self.clock.monotonic()
        return True

    async def restore(self) -> None:
        """Bring back what Redis has lost. Other replicas do the same: what is there stays as it is.

        Raises:
            StoreUnavailable: ask again.
        """
        entries = [entry for entry in self._held.values() if entry.version]
        for at in range(0, len(entries), _PAGE):
            await self.store.run(self.store.verbs.restore(entries[at : at + _PAGE]))
        self.hurry()

    async def _ask(self, known: int, epoch: str) -> Changes | None:
        """Ask for all changes since a version, in pages."""
        since, entries = known, list[StoredEntry]()
        while True:
            page = await self.store.run(self.store.verbs.changes(known, epoch=epoch, limit=_PAGE))
            if page is None:
                return None
            if page.since != known:  # Redis has lost what we knew
                since, entries = 0, []
            entries += page.entries
            known = page.version
            if page.is_last:
                return page._replace(since=since, entries=entries)

    def _after(self, changes: Changes) -> dict[str, StoredEntry]:
        """What is stored, if these changes are all there are."""
        if changes.since and not changes.entries:
            return self._held
        held = dict(self._held) if changes.since else {}
        for entry in changes.entries:
            if entry.raw:
                held[entry.job] = entry
            else:
                held.pop(entry.job, None)
        return held

    def _apply(self, changes: Changes) -> None:
        before, self._held, self._version = self._held, self._after(changes), changes.version
        names = {entry.job: None for entry in changes.entries} if changes.since else {**before, **self._held}
        changed = [name for name in names if before.get(name) != self._held.get(name)]
        for name in changed:
            self._change(name, is_new=name not in before)
        if changed and self._is_read:
            removed = sum(name not in self._held for name in changed)
            self.emit(JobsChanged(len(changed) - removed, removed))
        self._is_read = True

    def _change(self, name: str, *, is_new: bool) -> None:
        entry = self._held.get(name)
        if name in self._in_code:
            if is_new:
                self.emit(JobShadowed(name))
        elif entry is None:
            self.drop(name)
        else:
            self._take_up(entry)

    def _take_up(self, entry: StoredEntry) -> None:
        if self.build is None:
            return
        try:
            job = self.build(entry)
        except Exception as error:  # noqa: BLE001 - it may hold anything; one job must not stop the others
            self.drop(entry.job)
            self.emit(JobUnusable(entry.job, entry.version, _problem(error)))
        else:
            self.plan(job)


def _problem(error: Exception) -> str:
    if isinstance(error, ConfigurationError):
        return f"{error.argument}: {error.problem}" if error.argument else error.problem
    return f"it is damaged ({type(error).__name__}: {error}); put it again"
