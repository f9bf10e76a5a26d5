"""A user with the rights that docs/redis.md lists, and no more: everything works, and what is missing is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from slotqueue import Every, Policy, SlotQueue, StoreUnavailable
from slotqueue.events import Event, ServerChanged
from slotqueue.hold import AsyncHold
from slotqueue.ops.checking import check
from slotqueue.ops.findings import Severity
from slotqueue.ops.site import Site
from slotqueue.protocols import Process
from tests.connections import desk
from tests.connections.conftest import new_server
from tests.connections.documents import block
from tests.connections.enqueuers import Listing
from tests.connections.steps import job_called, live_a_life, opened, opened_blocking, slip_of, slot_of
from tests.proxy import Proxy
from tests.servers import Server

RULE = " ".join(block("acl").split())
STORE = Path(__file__).parents[2] / "slotqueue" / "store"


@pytest.fixture(scope="module")
def ruled() -> Iterator[Server]:
    with new_server() as server:
        yield server


@pytest.fixture
def url(ruled: Server) -> str:
    """The URL of a user with these rights, on an empty server."""
    ruled.flush()
    ruled.ask("ACL SETUSER scheduler reset")
    ruled.ask(RULE)
    return f"redis://scheduler:secret@127.0.0.1:{ruled.port}/0"


def _commands() -> set[str]:
    """Every command that a script or a reader sends."""
    scripts = "".join(path.read_text(encoding="utf-8") for path in (STORE / "lua").glob("*.lua"))
    readers = "".join(path.read_text(encoding="utf-8") for path in STORE.glob("*.py"))
    said = {name.lower() for name in re.findall(r"redis\.p?call\('([A-Z]+)'", scripts)}
    return said | (set(re.findall(r"\bpipe\.([a-z]+)\(", readers)) - {"execute", "wait"})


def test_the_rule_names_every_command_that_is_sent() -> None:
    listed = set(re.findall(r"\+([a-z]+)(?:\s|$)", RULE))
    assert _commands() - listed == set(), "say these in the rule of docs/redis.md"


async def test_every_verb_works_with_these_rights(url: str) -> None:
    await live_a_life(url)


async def test_all_that_an_operator_asks_and_does_works_with_these_rights(url: str) -> None:
    await desk.sit_down(url, "ran")


async def test_a_replica_and_a_guard_work_with_these_rights_and_rather_offer_again_than_miss_a_failover(
    url: str, ruled: Server
) -> None:
    """Without INFO nobody can tell whether a new connection leads to another server."""
    listing, events = Listing(), list[Event]()
    with Proxy(ruled.port) as proxy:
        through = url.replace(str(ruled.port), proxy.url.partition(":")[2].rpartition(":")[2].partition("/")[0])
        slots = SlotQueue(through, enqueuer=listing, defaults=Policy(on_crash="complete"), on_event=events.append)
        slots.add("mail", Every(seconds=1))
        guard = slots._systems.open_guard(Process("w1", tasks=("listing:mail",)))
        guard.start()
        async with slots:
            message = await listing.next()
            hold = await guard.begin(message.slip, from_fence="")
            assert isinstance(hold, AsyncHold)
            async with hold:
                pass
            epoch = ruled.ask("GET ran:epoch")
            ruled.flush()
            ruled.ask(f"SET ran:epoch {epoch}")  # a failover to one that lagged far
            proxy.cut_over(ruled.port)
            while message.slip.key not in [each.slip.key for each in listing.messages[1:]]:
                await listing.next()
        await guard.stop()
    assert not [event for event in events if isinstance(event, ServerChanged)]


async def test_check_works_with_these_rights_and_says_what_it_could_not_read(url: str) -> None:
    slots = SlotQueue(url, enqueuer=Listing(), defaults=Policy(on_crash="complete"))
    slots.add("mail", Every(seconds=1))
    site = Site.of(slots)
    checked = await check(site)
    await site.close()
    assert [each for each in checked.findings if each.severity is Severity.PROBLEM] == []
    said = " ".join(each.text for each in checked.findings)
    assert "every new connection counts as another server; allow the command INFO" in said
    assert "the eviction policy could not be read" in said


# ---- what is missing is named


@pytest.mark.parametrize(
    "lacking, named",
    [
        ("-evalsha", r"may not run EVALSHA: its ACL lacks \+evalsha"),
        ("-script", r"may not run SCRIPT.*: its ACL lacks \+script"),
        ("-time", r"may not run TIME: its ACL lacks \+time"),
        ("-zadd", r"may not run ZADD: its ACL lacks \+zadd"),
        ("-hset", r"may not run HSET: its ACL lacks \+hset"),
        ("resetkeys", r"may not touch a key of the namespace: its ACL lacks ~ran:\*"),
    ],
)
async def test_a_right_that_is_missing_is_named(url: str, ruled: Server, lacking: str, named: str) -> None:
    ruled.ask(f"ACL SETUSER scheduler {lacking}")
    ruled.ask("SCRIPT FLUSH")
    slot = slot_of(job_called(), "ran")
    async with opened(url) as store:
        with opened_blocking(url) as blocking:
            with pytest.raises(StoreUnavailable, match=named) as caught:
                blocking.run(store.verbs.begin(slip_of(job_called(), slot), token="t", worker="w", from_fence=""))
            with pytest.raises(StoreUnavailable, match=named):
                await store.run(store.verbs.begin(slip_of(job_called(), slot), token="t", worker="w", from_fence=""))
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_reader_names_what_is_missing(url: str, ruled: Server) -> None:
    ruled.ask("ACL SETUSER scheduler -hkeys")
    async with opened(url) as store:
        with pytest.raises(StoreUnavailable, match=r"its ACL lacks \+hkeys"):
            await Site(store, "ran").reader.job_names()
