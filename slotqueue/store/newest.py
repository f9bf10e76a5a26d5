"""The newest slots over many listings, without reading them all: each is asked for more only while more may count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

Row = tuple[int, str]
"""Fire time in ms, and the slot key."""
Listed = Callable[[Sequence[str], int], Awaitable[Mapping[str, list[Row]]]]
"""Answers the newest rows of each of these jobs, so many at most, newest first."""

_HEADS = 1000
"""So many jobs are asked for their newest slot at a time."""
_GROWTH = 4
_FOR_EVER = 10**18


async def newest_of(jobs: Sequence[str], decided: Mapping[str, int], limit: int, listed: Listed) -> list[Row]:
    """Merge the newest rows of all jobs.

    The newest `limit` rows can only belong to the `limit` jobs whose own newest rows are the newest. Jobs are asked in
    the order of the fire times up to which they are decided, and no more of them once the rest cannot count.

    Args:
        jobs: names.
        decided: per job the fire time up to which it is decided, ms: no slot on record is newer.
        limit: how many rows at most, > 0.
        listed: reads listings.

    Returns:
        Rows, the newest first.
    """
    rows = {job: [head] for head, job in await _heads(jobs, decided, limit, listed)}
    pending, wanted = list(rows), 1
    while pending:
        top = sorted((row for each in rows.values() for row in each), reverse=True)[:limit]
        is_full = len(top) == limit
        pending = [job for job in pending if len(rows[job]) == wanted and not (is_full and rows[job][-1] < top[-1])]
        wanted = min(wanted * _GROWTH, limit) if wanted < limit else 0
        if not wanted:
            break
        rows.update(await listed(pending, wanted) if pending else {})
    return sorted((row for each in rows.values() for row in each), reverse=True)[:limit]


async def _heads(jobs: Sequence[str], decided: Mapping[str, int], limit: int, listed: Listed) -> list[tuple[Row, str]]:
    """The jobs with the newest heads, `limit` at most."""
    order = sorted(jobs, key=lambda job: decided.get(job, _FOR_EVER), reverse=True)
    heads: list[tuple[Row, str]] = []
    for at in range(0, len(order), _HEADS):
        if len(heads) == limit and heads[-1][0][0] >= decided.get(order[at], _FOR_EVER):
            break
        found = await listed(order[at : at + _HEADS], 1)
        heads += [(rows[0], job) for job, rows in found.items() if rows]
        heads = sorted(heads, reverse=True)[:limit]
    return heads
