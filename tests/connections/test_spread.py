"""`claim_spread`: the wins go round among the replicas, also where one is nearer to Redis than the others."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from slotqueue import Every, Policy, SlotQueue
from tests.connections.enqueuers import Listing
from tests.proxy import Proxy
from tests.servers import Server

pytestmark = pytest.mark.alone  # whoever is quicker wins

ENOUGH = 60


async def _wins(urls: list[str], spread: float) -> list[int]:
    """How many slots each of three replicas wins. Jitter lets each slot fall due, and be raced for, by itself."""
    listings = [Listing() for _ in urls]
    policy = Policy(on_crash="complete", jitter=timedelta(milliseconds=900))
    one, two, three = (
        SlotQueue(url, enqueuer=listing, claim_spread=spread, defaults=policy)
        for url, listing in zip(urls, listings, strict=True)
    )
    for slots in (one, two, three):
        for number in range(20):
            slots.add(f"job-{number}", Every(seconds=1))
    async with one, two, three, asyncio.timeout(20):
        while sum(len(listing.messages) for listing in listings) < ENOUGH:  # noqa: ASYNC110 - whoever wins
            await asyncio.sleep(0.05)
    keys = [message.slip.key for listing in listings for message in listing.messages]
    assert len(keys) == len(set(keys))
    return [len(listing.messages) for listing in listings]


@pytest.mark.parametrize("spread, is_shared", [(0, False), (0.5, True)])
async def test_the_wins_go_round_among_three_replicas(
    redis_url: str, server: Server, spread: float, is_shared: bool
) -> None:
    with Proxy(server.port) as far:
        far.delay(0.1)
        wins = await _wins([redis_url, far.url, far.url], spread)
    assert (wins[1] + wins[2] > ENOUGH / 6) is is_shared, wins
    assert all(wins) or not is_shared, wins
