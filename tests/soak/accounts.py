"""What slotqueue itself has counted, beside the slots that there were to count."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from slotqueue.ops import Site
from slotqueue.ops.observing import Observed, observe
from slotqueue.slots import key_at, to_ms
from slotqueue.store.survey import Survey
from tests.soak.orders import JOBS, SoakJob

_LOOKS = 200
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Account:
    """One job's slots.

    Args:
        counted: by state, how many slots have ended so, as slotqueue has counted.
        on_record: by state, open ones too, of how many fire times of the schedule the record says so.
        in_gaps: how many fire times lie in recorded gaps.
        in_both: slots that are on record, and in a gap as well.
    """

    counted: Mapping[str, int]
    on_record: Mapping[str, int]
    in_gaps: int = 0
    in_both: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accounts:
    """The slots of all jobs at one moment.

    Args:
        of_job: by name.
        claimed: how many slots were claimed, as slotqueue has counted.
        reopened: how many ended ones were begun or finished all the same, as it has counted.
    """

    of_job: Mapping[str, Account] = field(default_factory=dict)
    claimed: int = 0
    reopened: int = 0


async def read_accounts(url: str, born: float) -> Accounts:
    """Read them at a moment at which nothing is claimed and nothing ends.

    Args:
        url: the coordinating Redis.
        born: seconds since the epoch; no job fired before.

    Raises:
        TimeoutError: there was no such moment.
    """
    site = Site.at(url, "ran")
    try:
        before = await observe(site)
        for _ in range(_LOOKS):
            of_job = {job.name: await _account(site, job, datetime.fromtimestamp(born, UTC), before) for job in JOBS}
            after = await observe(site)
            if _counts(after) == _counts(before):
                return Accounts(of_job, before.claimed, before.reopened)
            before = after
            await asyncio.sleep(_PAUSE_S)
    finally:
        await site.close()
    raise TimeoutError(f"slots were claimed or ended during each of {_LOOKS} looks")


async def _account(site: Site, job: SoakJob, born: datetime, seen: Observed) -> Account:
    fires = list(job.schedule.between(born, datetime.now(UTC) + timedelta(seconds=1)))
    keys = [key_at(site.namespace, job.name, fire) for fire in fires]
    gaps = (await site.reader.job(job.name)).gaps
    in_gaps = {
        key for key, fire in zip(keys, fires, strict=True) if any(gap.after < to_ms(fire) <= gap.until for gap in gaps)
    }
    states = {
        key: tally.state
        for key, tally in zip(keys, await Survey(site.store, site.namespace).tallies(keys), strict=True)
        if tally.state is not None
    }
    return Account(
        counted={state: number for (state, name), number in seen.ended.items() if name == job.name},
        on_record=Counter(state.value for state in states.values()),
        in_gaps=len(in_gaps),
        in_both=tuple(sorted(in_gaps & states.keys())),
    )


def _counts(seen: Observed) -> tuple[object, ...]:
    return seen.claimed, seen.reopened, seen.ended
