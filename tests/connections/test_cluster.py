"""A cluster of three nodes: every verb on both sides, a replica and a guard, and what a namespace without tag hears."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis.asyncio.cluster
import redis.cluster

from slotqueue import Every, Policy, SlotQueue
from slotqueue.answers import Run
from slotqueue.errors import WrongStore
from slotqueue.events import DataLost, Event, ServerChanged
from slotqueue.hold import AsyncHold
from slotqueue.ops.checking import check
from slotqueue.ops.findings import Severity
from slotqueue.ops.site import Site
from slotqueue.protocols import Process
from slotqueue.store.checks import Health, Level, check_redis
from slotqueue.store.scripts import source_of
from tests.connections import desk, documents
from tests.connections.clusters import replica_of, three_nodes
from tests.connections.enqueuers import Listing
from tests.connections.replication import in_step
from tests.connections.steps import live_a_life, opened, opened_blocking
from tests.servers import Server

TAGGED = "{ran}"
LUA = Path(__file__).parents[2] / "slotqueue" / "store" / "lua"
SCRIPTS = {path.stem for path in LUA.glob("*.lua")} - {"record", "overlap", "by_hand"}  # parts of others


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Server]]:
    with three_nodes() as nodes:
        yield nodes


@pytest.fixture
def cluster(nodes: list[Server]) -> str:
    """The URL of the cluster, without any data."""
    for node in nodes:
        node.flush()
    return f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}"


@pytest.mark.parametrize("namespace", [TAGGED, "a{b}c", "{x}", "{y}"])
async def test_every_verb_works_on_whichever_node_the_namespace_lies(
    cluster: str, nodes: list[Server], namespace: str
) -> None:
    await live_a_life(cluster, namespace)
    assert sum(_has_data(node) for node in nodes) == 1


async def test_every_script_runs_there_for_an_operator_and_for_a_replica(cluster: str, nodes: list[Server]) -> None:
    for node in nodes:
        node.ask("SCRIPT FLUSH")
    await live_a_life(cluster, TAGGED)
    for node in nodes:
        node.flush()
    await desk.sit_down(cluster, TAGGED)
    await _lose_all(cluster, nodes)
    owner = next(node for node in nodes if _owns(node, TAGGED))
    assert {name for name in SCRIPTS if not _has_script(owner, name)} == set()


async def _lose_all(cluster: str, nodes: list[Server]) -> None:
    """Let a replica with a stored job find Redis empty: it tells what it knows."""
    listing, events = Listing(), list[Event]()
    slots = SlotQueue(
        cluster, namespace=TAGGED, enqueuer=listing, defaults=Policy(on_crash="complete"), on_event=events.append
    )
    async with slots:
        await slots.store.run(slots.store.verbs.enlist(Process("w1", tasks=("listing:digest",))))
        await slots.ops.put("digest", Every(seconds=1), enqueuer="listing")
        await listing.next()
        claimed = (await listing.next()).slip.key
        assert await slots.store.run(slots.store.verbs.taken([claimed])) == 1
        for node in nodes:
            node.flush()
        while not [event for event in events if isinstance(event, DataLost)]:
            await listing.next()
        assert [each.name for each in await slots.ops.stored()] == ["digest"]
        assert await slots.store.client.zscore(f"{TAGGED}:tasks", "listing:digest")


async def test_a_client_of_the_cluster_tells_where_it_is(nodes: list[Server], cluster: str) -> None:
    port = nodes[2].port
    given = redis.asyncio.cluster.RedisCluster(host="127.0.0.1", port=port)
    await live_a_life(given, TAGGED)
    for node in nodes:
        node.flush()
    blocking = redis.cluster.RedisCluster(host="127.0.0.1", port=port)
    await live_a_life(blocking, TAGGED)
    blocking.close()


async def test_a_replica_and_a_guard_bring_a_slot_to_its_end(cluster: str) -> None:
    listing, events = Listing(), list[Event]()
    slots = SlotQueue(
        cluster, namespace=TAGGED, enqueuer=listing, defaults=Policy(on_crash="complete"), on_event=events.append
    )
    slots.add("mail", Every(seconds=1))
    guard = slots._systems.open_guard(Process("w1", tasks=("listing:mail",)))
    guard.start()
    async with slots:
        message = await listing.next()
        hold = await guard.begin(message.slip, from_fence="")
        assert not isinstance(hold, Run)
        async with hold:  # type: ignore[union-attr]
            pass
        assert (await slots.sweep())["overdue"] == 0
    await guard.stop()
    async with opened(cluster, TAGGED) as store:
        (kept,) = await Site(store, TAGGED).reader.slots([message.slip.key])
    assert kept.record is not None
    assert kept.record.state == "done"
    assert not [event for event in events if isinstance(event, DataLost | ServerChanged)]


async def test_a_node_that_takes_the_hash_slot_over_is_found(cluster: str, nodes: list[Server]) -> None:
    listing, events = Listing(), list[Event]()
    slots = SlotQueue(
        cluster, namespace=TAGGED, enqueuer=listing, defaults=Policy(on_crash="complete"), on_event=events.append
    )
    slots.add("mail", Every(seconds=1))
    async with slots:
        await listing.next()
        _move(nodes, TAGGED)
        before = len(listing.messages)
        while len(listing.messages) < before + 2:
            await listing.next()
    fires = [message.slip.fire for message in listing.messages if message.slip.n == 0]
    assert fires == list(range(fires[0], fires[-1] + 1, 1000))
    _move(nodes, TAGGED)


async def test_a_node_whose_replica_takes_over_costs_no_slot() -> None:
    listing, events = Listing(), list[Event]()
    with contextlib.ExitStack() as stack:
        nodes = stack.enter_context(three_nodes())
        owner = next(node for node in nodes if _owns(node, TAGGED))
        heir = stack.enter_context(replica_of(owner))
        slots = SlotQueue(
            "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes),
            namespace=TAGGED,
            enqueuer=listing,
            defaults=Policy(on_crash="complete", lookback=20),
            on_event=events.append,
        )
        slots.add("mail", Every(seconds=1))
        guard = slots._systems.open_guard(Process("w1", tasks=("listing:mail",)))
        guard.start()
        async with slots:
            hold = await guard.begin((message := await listing.next()).slip, from_fence="")
            assert isinstance(hold, AsyncHold)
            in_step(owner)
            await asyncio.to_thread(owner.kill)
            heir.ask("CLUSTER FAILOVER TAKEOVER")
            while not [event for event in events if isinstance(event, ServerChanged)]:
                await listing.next()
            async with hold:
                pass
            (kept,) = await Site(slots.store, TAGGED).reader.slots([message.slip.key])
            await listing.next()
        await guard.stop()
    assert kept.record is not None
    assert kept.record.state == "done"
    fires = {message.slip.fire for message in listing.messages}
    assert fires == set(range(min(fires), max(fires) + 1, 1000))


async def test_replicas_are_waited_for_at_the_node_of_the_namespace(cluster: str, nodes: list[Server]) -> None:
    for node in nodes:
        node.ask("SCRIPT FLUSH")
    async with opened(cluster, TAGGED, replicas_to_ack=1) as store:
        say = store.verbs.register(Process("r1"), [], epoch="e", is_last=True)
        answer, doubt = await store.run_acknowledged(say)
        assert answer.epoch == "e"
        assert doubt == "0 of 1 replicas of Redis acknowledged the claim within 1 s"
    for node in nodes:
        node.ask("SCRIPT FLUSH")
    with opened_blocking(cluster, TAGGED, replicas_to_ack=1) as blocking:
        answer, doubt = blocking.run_acknowledged(say)
        assert answer.epoch == "e"
        assert doubt == "0 of 1 replicas of Redis acknowledged the claim within 1 s"


async def test_the_how_to_for_a_cluster_runs(nodes: list[Server], cluster: str) -> None:
    pytest.importorskip("arq")
    places = {"node-1:6379,node-2:6379": cluster.partition("://")[2]}
    assert (await documents.starts("cluster", places)).namespace == TAGGED


# ---- health


async def test_the_node_of_the_namespace_is_asked_for_its_health(cluster: str) -> None:
    async with opened(cluster, TAGGED) as store:
        health = await check_redis(store)
    assert health.server.startswith("Valkey")
    assert health.clock is not None
    assert [finding.what for finding in health.findings if finding.level is not Level.NOTE] == []


@pytest.mark.parametrize("namespace, write", [("ran", r"namespace='\{ran\}'"), (TAGGED, r"redis\+cluster://host:port")])
async def test_a_node_that_is_asked_as_if_it_were_alone_says_so_in_one_line(
    cluster: str, nodes: list[Server], namespace: str, write: str
) -> None:
    wrong = next(node for node in nodes if not _owns(node, namespace))
    async with opened(wrong.url, namespace) as store:
        with pytest.raises(WrongStore, match=f"node of a cluster: .*{write}") as caught:
            await store.run(store.verbs.register(Process("r1"), [], epoch="e", is_last=True))
        assert "\n" not in str(caught.value)
        health: Health = await check_redis(store)
        assert [each.level for each in health.findings if "cluster" in each.what] == [Level.ERROR]
        checked = await check(Site(store, namespace))
    problems = [each.text for each in checked.findings if each.severity is Severity.PROBLEM]
    assert len(problems) == 1
    assert "cluster" in problems[0]


def _has_data(node: Server) -> bool:
    return node.ask("DBSIZE") != "0"


def _has_script(node: Server, name: str) -> bool:
    with redis.Redis(port=node.port) as client:
        (has,) = client.script_exists(hashlib.sha1(source_of(name).encode()).hexdigest())
    return bool(has)


def _owns(node: Server, namespace: str) -> bool:
    answer = node.ask(f"CLUSTER KEYSLOT {namespace}:epoch")
    slot = int(answer)
    mine = next(line for line in node.ask("CLUSTER NODES").splitlines() if "myself" in line)
    ranges = [each.partition("-") for each in mine.split()[8:]]
    return any(int(first) <= slot <= int(last or first) for first, _, last in ranges)


def _move(nodes: list[Server], namespace: str) -> None:
    """Move the hash slot of a namespace with its keys to another node."""
    slot = nodes[0].ask(f"CLUSTER KEYSLOT {namespace}:epoch")
    source = next(node for node in nodes if _owns(node, namespace))
    target = next(node for node in nodes if node is not source)
    source_id, target_id = source.ask("CLUSTER MYID"), target.ask("CLUSTER MYID")
    target.ask(f"CLUSTER SETSLOT {slot} IMPORTING {source_id}")
    source.ask(f"CLUSTER SETSLOT {slot} MIGRATING {target_id}")
    with redis.Redis(port=source.port) as client:
        while keys := client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 1000, "KEYS", *keys)
    for node in (target, source, *(each for each in nodes if each not in (source, target))):
        node.ask(f"CLUSTER SETSLOT {slot} NODE {target_id}")
