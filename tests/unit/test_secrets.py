"""A password in the URL of the coordinating Redis reaches no text: repr, event, error, log, record of a process."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import quote

import pytest

from slotqueue import Every, Policy, SlotQueue
from slotqueue.errors import StoreUnavailable
from slotqueue.events import Event, StoreLost
from tests.connections.enqueuers import Listing

SECRET = "s3cret/of@the:house%"
RAW, QUOTED = "s3cret", quote(SECRET, safe="")
URLS = (
    f"redis://user:{QUOTED}@127.0.0.1:1/0",
    f"redis://:{QUOTED}@127.0.0.1:1/0",
    f"redis://127.0.0.1:1/0?username=user&password={QUOTED}",
    f"rediss://user:{QUOTED}@127.0.0.1:1/0?ssl_cert_reqs=none",
    f"unix://user:{QUOTED}@/nowhere/redis.sock?db=0",
    f"redis+sentinel://user:{QUOTED}@127.0.0.1:1,127.0.0.1:2/mymaster/0?sentinel_password={QUOTED}",
    f"rediss+sentinel://user:{QUOTED}@127.0.0.1:1/mymaster?ssl_cert_reqs=none",
    f"redis+cluster://user:{QUOTED}@127.0.0.1:1,127.0.0.1:2",
    f"rediss+cluster://user:{QUOTED}@127.0.0.1:1?ssl_cert_reqs=none",
)


@pytest.mark.parametrize("url", URLS)
async def test_a_redis_that_is_away_is_told_of_without_its_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[Event] = []
    is_lost = asyncio.Event()

    def hear(event: Event) -> None:
        told.append(event)
        if isinstance(event, StoreLost):
            is_lost.set()

    slots = SlotQueue(url, enqueuer=Listing(), namespace="{ran}", defaults=Policy(on_crash="complete"), on_event=hear)
    job = slots.add("mail", Every(seconds=1))
    with pytest.raises(StoreUnavailable) as caught:
        await slots.tick()
    async with slots:
        await asyncio.wait_for(is_lost.wait(), 20)
    texts = [repr(slots), repr(job), repr(slots.store), repr(slots.store.place), repr(caught.value), str(caught.value)]
    texts += [repr(caught.value.__cause__), caplog.text, *map(str, told), *map(repr, told)]
    assert told
    assert [text for text in texts if RAW in text] == []
