"""What a reader asks: plain pipelines that write nothing, bounded round trips, never `KEYS` or `SCAN`.

A slot's keys may be damaged (a key of another type, a record without sense): that is an answer about this slot, not an
error. Only a Redis that does not answer, or a damaged key of the whole namespace, raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from slotqueue.answers import StoredEntry
from slotqueue.store.asking import CHUNK, Asker, Queue
from slotqueue.store.newest import Row, newest_of
from slotqueue.store.readings import (
    Gap,
    JobKnown,
    ProcessSeen,
    SlotKept,
    as_instant,
    as_number,
    gap_of,
    job_of,
    process_of,
    slot_of,
)

_FLEET = ""
"""The field of the registry of jobs that says when any replica was last seen."""


class JobFacts(NamedTuple):
    """What the namespace says of one job. Instants are ms of Redis's time.

    Args:
        known: its schedule versions in the registry; None where no replica ever registered it.
        decided: every slot up to this fire time is decided, 0 for none.
        gaps: slots that nobody decided, oldest first; the newest 100.
        paused_until: None where it is not paused, 0 for ever.
        fleet_seen: when any replica last registered, 0 for never.
    """

    known: JobKnown | None
    decided: int
    gaps: list[Gap]
    paused_until: int | None
    fleet_seen: int


class Reader(Asker):
    """Reads one namespace.

    Args:
        store: the coordinating Redis.
        namespace: what every key begins with.
    """

    # ---- slots

    async def slots(self, keys: Sequence[str]) -> list[SlotKept]:
        """Read all that is kept of slots; answers in the order of `keys`.

        Args:
            keys: sound slot keys of this namespace.

        Raises:
            StoreUnavailable: ask again.
        """
        found: list[SlotKept] = []
        for at in range(0, len(keys), CHUNK // 8):
            some = keys[at : at + CHUNK // 8]
            replies = await self.ask([queue for key in some for queue in self._questions(key)])
            found += [slot_of(key, replies[i * 8 : (i + 1) * 8]) for i, key in enumerate(some)]
        return found

    async def states(self, keys: Sequence[str]) -> list[str]:
        """Read only where slots stand: the word in the record, "" where there is none or it is damaged."""

        def question(key: str) -> Queue:
            return lambda pipe: pipe.hget(self.keys.record(key), "state")

        replies = await self.ask([question(key) for key in keys])
        return ["" if isinstance(reply, Exception) else reply or "" for reply in replies]

    async def newest(
        self, jobs: Sequence[str], limit: int, *, since: int | None = None, until: int | None = None
    ) -> list[str]:
        """Find the newest slots on record of some jobs, in a few rounds however many jobs there are.

        Args:
            jobs: names.
            limit: how many slots at most, > 0.
            since, until: only fire times in [since, until], ms; None for no limit.

        Returns:
            Slot keys, the newest first.
        """
        (reply,) = await self.ask([lambda pipe: pipe.hgetall(self.keys.of("decided"))])
        decided = {job: as_number(text) for job, text in self.sound(reply).items()}
        if until is not None:
            decided = {job: min(decided.get(job, until), until) for job in jobs}
        window = ("+inf" if until is None else until, "-inf" if since is None else since)
        return [key for _, key in await newest_of(jobs, decided, limit, partial(self._listed, window))]

    async def open_keys(self, limit: int) -> list[str]:
        """Ask for keys of open slots, by deadline."""
        (reply,) = await self.ask([lambda pipe: pipe.zrange(self.keys.of("open"), 0, limit - 1)])
        found: list[str] = self.sound(reply)
        return found

    async def dead_keys(self, limit: int) -> list[str]:
        """Ask for keys of dead letters and lost slots, the newest first."""
        (reply,) = await self.ask([lambda pipe: pipe.zrevrange(self.keys.of("dead"), 0, limit - 1)])
        found: list[str] = self.sound(reply)
        return found

    # ---- jobs

    async def job(self, name: str) -> JobFacts:
        """Read what the namespace says of one job."""
        keys = self.keys
        known, decided, gaps, paused, all_paused, fleet = await self.ask(
            [
                lambda pipe: pipe.hget(keys.of("jobs"), name),
                lambda pipe: pipe.hget(keys.of("decided"), name),
                lambda pipe: pipe.lrange(keys.missed(name), 0, -1),
                lambda pipe: pipe.hget(keys.of("pauses"), name),
                lambda pipe: pipe.hget(keys.of("pauses"), "*"),
                lambda pipe: pipe.hget(keys.of("jobs"), _FLEET),
            ],
        )
        pauses = [as_number(each) for each in map(self.sound, (paused, all_paused)) if each is not None]
        until = None if not pauses else 0 if 0 in pauses else max(pauses)
        return JobFacts(
            job_of(name, self.sound(known)),
            as_number(self.sound(decided)),
            _gaps(gaps),
            until,
            as_number((self.sound(fleet) or "").partition(":")[0]),
        )

    async def jobs(self) -> dict[str, JobKnown]:
        """Read the registry: every job that any replica ever made known, by name."""
        (found,) = await self.ask([lambda pipe: pipe.hgetall(self.keys.of("jobs"))])
        known = {name: job_of(name, text) for name, text in self.sound(found).items() if name != _FLEET}
        return {name: each for name, each in known.items() if each is not None}

    async def job_names(self) -> list[str]:
        """Read the names of all known jobs."""
        (found,) = await self.ask([lambda pipe: pipe.hkeys(self.keys.of("jobs"))])
        return [name for name in self.sound(found) if name != _FLEET]

    async def jobs_with_gaps(self, since: int = 0) -> list[str]:
        """Find the jobs that have gaps of slots that nobody decided, the newest gap first.

        Args:
            since: only those whose newest gap reaches beyond, ms.
        """
        (reply,) = await self.ask([lambda pipe: pipe.zrevrangebyscore(self.keys.of("gaps"), "+inf", f"({since}")])
        found: list[str] = self.sound(reply)
        return found

    async def stored_job(self, name: str) -> StoredEntry | None:
        """Read one job that is stored in Redis."""
        (found,) = await self.ask([lambda pipe: pipe.hget(self.keys.of("stored"), name)])
        entry = self.sound(found)
        return None if entry is None else StoredEntry.parse(name, entry)

    async def stored(self) -> list[StoredEntry]:
        """Read the jobs that are stored in Redis, in no order."""
        (found,) = await self.ask([lambda pipe: pipe.hgetall(self.keys.of("stored"))])
        return [StoredEntry.parse(name, entry) for name, entry in self.sound(found).items() if name]

    async def gaps(self, jobs: Sequence[str]) -> dict[str, list[Gap]]:
        """Read the gaps of slots that nobody decided, the newest 100 of each job, oldest first."""

        def question(job: str) -> Queue:
            return lambda pipe: pipe.lrange(self.keys.missed(job), 0, -1)

        replies = await self.ask([question(job) for job in jobs])
        return {job: _gaps(reply) for job, reply in zip(jobs, replies, strict=True)}

    async def owner(self) -> str | None:
        """Read which application has said that the namespace is its own; None where none has."""
        (found,) = await self.ask([lambda pipe: pipe.get(self.keys.of("app"))])
        owner: str | None = self.sound(found)
        return owner

    # ---- processes

    async def tasks(self) -> dict[str, int]:
        """Read which tasks guarded workers know ("arq:send_digest"), and when such a worker was last seen, ms."""
        (found,) = await self.ask([lambda pipe: pipe.zrange(self.keys.of("tasks"), 0, -1, withscores=True)])
        return {task: as_instant(score) or 0 for task, score in self.sound(found)}

    async def replicas(self) -> list[ProcessSeen]:
        """Read the registry of replicas, the one seen last first. One that vanished stays for a day."""
        return await self._processes("replicas")

    async def workers(self) -> list[ProcessSeen]:
        """Read the registry of guarded workers, the one seen last first. One that vanished stays for a day."""
        return await self._processes("workers")

    # ---- how it asks

    def _questions(self, key: str) -> list[Queue]:
        claim, done, record, _ = self.keys.slot_of(key)
        return [
            lambda pipe: pipe.get(claim),
            lambda pipe: pipe.pttl(claim),
            lambda pipe: pipe.get(done),
            lambda pipe: pipe.pttl(done),
            lambda pipe: pipe.hgetall(record),
            lambda pipe: pipe.pttl(record),
            lambda pipe: pipe.zscore(self.keys.of("open"), key),
            lambda pipe: pipe.zscore(self.keys.of("dead"), key),
        ]

    async def _listed(
        self, window: tuple[int | str, int | str], jobs: Sequence[str], limit: int
    ) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}

        def question(job: str) -> Queue:
            return lambda pipe: pipe.zrevrangebyscore(
                self.keys.listing(job), *window, start=0, num=limit, withscores=True
            )

        replies = await self.ask([question(job) for job in jobs])
        for job, reply in zip(jobs, replies, strict=True):
            rows = [] if isinstance(reply, Exception) else reply
            found[job] = [
                (at, f"{self.keys.namespace}:{job}:{tail}")
                for tail, score in rows
                if (at := as_instant(score)) is not None
            ]
        return found

    async def _processes(self, word: str) -> list[ProcessSeen]:
        (found,) = await self.ask([lambda pipe: pipe.hgetall(self.keys.of(word))])
        seen = [process_of(name, text) for name, text in self.sound(found).items()]
        return sorted(seen, key=lambda each: each.seen, reverse=True)


def _gaps(reply: Any) -> list[Gap]:  # noqa: ANN401 - a reply is anything until it is read
    lines = [] if isinstance(reply, Exception) else reply
    return [gap for line in lines if (gap := gap_of(line)) is not None]
