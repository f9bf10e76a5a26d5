"""The newest rows over many listings are the same as if all had been read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from slotqueue.store.newest import Row, newest_of

LISTINGS = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.lists(st.integers(0, 60), max_size=40))


@given(listings=LISTINGS, limit=st.integers(1, 50), is_decided_known=st.booleans())
def test_it_finds_what_reading_everything_finds(
    listings: dict[str, list[int]], limit: int, is_decided_known: bool
) -> None:
    rows = {job: sorted({(fire, f"{job}:{fire}") for fire in fires}, reverse=True) for job, fires in listings.items()}
    decided = {job: max(fires, default=0) for job, fires in listings.items()} if is_decided_known else {}
    most = 0

    async def listed(jobs: Sequence[str], wanted: int) -> Mapping[str, list[Row]]:
        nonlocal most
        most = max(most, wanted)
        return {job: rows[job][:wanted] for job in jobs}

    found = asyncio.run(newest_of(list(rows), decided, limit, listed))
    assert [fire for fire, _ in found] == sorted((fire for each in rows.values() for fire, _ in each), reverse=True)[
        :limit
    ]
    assert len(set(found)) == len(found)
    assert most <= limit
