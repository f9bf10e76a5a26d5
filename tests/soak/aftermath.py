"""What the store says of the slots that were due during a soak, once nothing more becomes of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from slotqueue.ops import Site
from slotqueue.slots import from_ms, key_at, to_ms
from tests.soak import ledger
from tests.soak.checker import Due, is_beyond_help
from tests.soak.faults import Struck
from tests.soak.orders import JOBS, SoakJob

_LOOK_EVERY_S = 1.0


class Aftermath:
    """Watches the slots that were due between two instants.

    Args:
        url: the coordinating Redis.
        path: of the ledger.
        start, end: seconds since the epoch.
        faults: that were struck.
    """

    def __init__(self, url: str, path: Path, start: float, end: float, faults: Sequence[Struck]) -> None:
        self._url = url
        self._path = path
        self._start, self._end = (from_ms(int(at * 1000)) for at in (start, end))
        self._faults = faults
        self._to_monotonic = monotonic() - time.time()

    async def settled(self, within: float, tend: Callable[[], object], say: Callable[[str], object]) -> list[Due]:
        """Wait until none of the slots may still move, at most `within` seconds; tells of each what became of it."""
        site = Site.at(self._url, "ran")
        until = monotonic() + within
        try:
            while True:
                tend()
                dues = [due for job in JOBS if job.versions == (1, 2) for due in await self._dues(site, job)]
                has_ended = {entry.key for entry in ledger.read(self._path) if entry.what == "ended"}
                waiting = sum(self._may_move(due, has_ended) for due in dues)
                if not waiting or monotonic() > until:
                    return dues
                say(f"{waiting} slots have not ended yet")
                looked = monotonic()
                while monotonic() < looked + _LOOK_EVERY_S:
                    tend()
                    await asyncio.sleep(0.1)
        finally:
            await site.close()

    async def _dues(self, site: Site, job: SoakJob) -> list[Due]:
        fires = list(job.schedule.between(self._start, self._end))
        kept = await site.reader.slots([key_at("ran", job.name, fire) for fire in fires])
        gaps = (await site.reader.job(job.name)).gaps
        return [
            Due(
                key=slot.key,
                fire=to_ms(fire) / 1000 + self._to_monotonic,
                is_complete=job.on_crash == "complete",
                state=slot.record.state if slot.record else None,
                is_missed=any(gap.after < to_ms(fire) <= gap.until for gap in gaps),
            )
            for fire, slot in zip(fires, kept, strict=True)
        ]

    def _may_move(self, due: Due, has_ended: set[str]) -> bool:
        if due.state is not None:
            return due.state.is_open
        return not (due.is_missed or due.key in has_ended or is_beyond_help(due, self._faults))
