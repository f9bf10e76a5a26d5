"""What a reader asks: bounded round trips, no `KEYS`, no `SCAN`, no write; damage is an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import redis.asyncio.client

from slotqueue.answers import Gap, Known
from slotqueue.errors import StoreUnavailable
from slotqueue.protocols import Process
from slotqueue.slots import SlotState
from slotqueue.store import AsyncStore
from slotqueue.store.reading import Reader
from tests.servers import Server
from tests.store.stage import EPOCH_VALUE, HOUR, NAMESPACE, Stage


@pytest.fixture
async def reader(redis_url: str) -> AsyncIterator[Reader]:
    store = AsyncStore(redis_url, NAMESPACE)
    yield Reader(store, NAMESPACE)
    await store.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commands each round trip carried."""
    found: list[int] = []
    execute = redis.asyncio.client.Pipeline.execute

    async def counted(self: redis.asyncio.client.Pipeline, raise_on_error: bool = True) -> object:
        found.append(len(self.command_stack))
        return await execute(self, raise_on_error)

    monkeypatch.setattr(redis.asyncio.client.Pipeline, "execute", counted)
    return found


def listed(stage: Stage, job: str, *fires: int) -> list[str]:
    """Put slots on a job's listing, as claims do."""
    for fire in fires:
        stage.redis.zadd(f"ran:{job}:slots", {f"tail-{fire}": fire})
    return [f"ran:{job}:tail-{fire}" for fire in fires]


async def test_the_newest_of_many_jobs_are_found_in_a_few_rounds(
    stage: Stage, reader: Reader, trips: list[int]
) -> None:
    jobs = [f"job-{number}" for number in range(300)]
    for number, job in enumerate(jobs):
        listed(stage, job, number, 5000 - number)
    found = await reader.newest(jobs, 3)
    assert found == ["ran:job-0:tail-5000", "ran:job-1:tail-4999", "ran:job-2:tail-4998"]
    assert trips == [1, 300, 3]


async def test_jobs_that_were_decided_long_ago_are_not_even_asked(
    stage: Stage, reader: Reader, trips: list[int]
) -> None:
    jobs = [f"job-{number}" for number in range(3000)]
    stage.redis.hset("ran:decided", mapping={job: 10_000 - number for number, job in enumerate(jobs)})
    newest = [listed(stage, job, 10_000 - number)[0] for number, job in enumerate(jobs[:5])]
    assert await reader.newest(jobs, 5) == newest
    assert trips == [1, 1000, 5]


async def test_many_slots_of_one_job_may_be_the_newest_of_all(stage: Stage, reader: Reader) -> None:
    busy = listed(stage, "busy", 90, 91, 92, 93)
    (rare,) = listed(stage, "rare", 50)
    assert await reader.newest(["busy", "rare"], 3) == [busy[3], busy[2], busy[1]]
    assert await reader.newest(["rare", "busy"], 10) == [*reversed(busy), rare]


async def test_jobs_due_at_one_instant_fill_the_list(stage: Stage, reader: Reader) -> None:
    for number in range(10):
        listed(stage, f"job-{number}", 7)
    assert len(await reader.newest([f"job-{number}" for number in range(10)], 4)) == 4


async def test_a_damaged_listing_hides_only_its_own_job(stage: Stage, reader: Reader) -> None:
    stage.redis.set("ran:broken:slots", "no zset")
    (key,) = listed(stage, "sound", 5)
    stage.redis.zadd("ran:odd:slots", {"tail": float("inf")})
    assert await reader.newest(["broken", "sound", "odd"], 5) == [key]


async def test_slots_are_read_many_a_round_trip(stage: Stage, reader: Reader, trips: list[int]) -> None:
    keys = [stage.claimed().key for _ in range(130)]
    found = await reader.slots(keys)
    assert [kept.key for kept in found] == keys
    assert all(kept.record is not None and kept.record.state is SlotState.CLAIMED for kept in found)
    assert len(trips) == 2


async def test_no_keys_and_no_scan(own_server: Server) -> None:
    stage, store = Stage(own_server.url), AsyncStore(own_server.url, NAMESPACE)
    reader = Reader(store, NAMESPACE)
    run = stage.running()
    before = stage.snapshot()
    stage.redis.config_resetstat()
    await reader.slots([run.slip.key])
    await reader.states([run.slip.key])
    await reader.newest(await reader.job_names(), 10)
    await reader.job("rollup")
    await reader.jobs()
    await reader.tasks()
    await reader.replicas()
    await reader.workers()
    await reader.open_keys(10)
    await reader.dead_keys(10)
    await reader.now()
    used = {name.removeprefix("cmdstat_") for name in stage.redis.info("commandstats")}
    await store.close()
    assert not used & {"keys", "scan", "hscan", "zscan", "sscan"}
    assert stage.snapshot() == before
    stage.close()


async def test_registries_tell_who_is_there_the_newest_first(stage: Stage, reader: Reader) -> None:
    stage.run(stage.verbs.enlist(Process("w1", '{"host": "a"}', ("arq:do_rollup",))))
    stage.redis.hset("ran:workers", "w0", "17 no json")
    stage.redis.hset("ran:replicas", "r0", "")
    workers = await reader.workers()
    assert [(each.id, each.about) for each in workers] == [("w1", {"host": "a"}), ("w0", {})]
    assert [each.id for each in await reader.replicas()] == ["r1", "r0"]
    assert (await reader.tasks())["arq:do_rollup"] == workers[0].seen


async def test_a_job_tells_its_versions_gaps_and_pauses(stage: Stage, reader: Reader) -> None:
    now = stage.now()
    for version in (Known("rollup", "v1", now - HOUR, 0), Known("rollup", "v2", 0, 0)):
        stage.run(stage.verbs.register(Process("r1"), [version], epoch=EPOCH_VALUE, is_last=True))
    gap = Gap(stage.job(), now - 5000, now - 1000, "older than the lookback")
    stage.run(stage.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))
    stage.redis.rpush("ran:rollup:missed", "damaged")
    stage.pause("rollup", now + HOUR)
    facts = await reader.job("rollup")
    assert facts.known is not None
    assert {each.version for each in facts.known.versions} == {"v1", "v2"}
    assert facts.known.since == now - HOUR
    assert facts.fleet_seen >= now
    assert facts.decided == now - 1000
    assert [(each.after, each.until, each.replica, each.why) for each in facts.gaps] == [
        (now - 5000, now - 1000, "r1", "older than the lookback")
    ]
    assert facts.paused_until == now + HOUR
    stage.pause("*")
    assert (await reader.job("rollup")).paused_until == 0
    assert await reader.job_names() == ["rollup"]
    assert list(await reader.jobs()) == ["rollup"]


async def test_an_unknown_job_is_none(reader: Reader) -> None:
    facts = await reader.job("nothing")
    assert (facts.known, facts.decided, facts.gaps, facts.paused_until) == (None, 0, [], None)


async def test_dead_letters_come_newest_first_and_open_ones_by_deadline(stage: Stage, reader: Reader) -> None:
    dead = [stage.in_state(SlotState.DEAD)[0].key for _ in range(2)]
    stage.redis.zincrby("ran:dead", -HOUR, dead[1])
    opened = [stage.claimed().key, stage.queued().key]
    assert await reader.dead_keys(10) == dead
    assert await reader.dead_keys(1) == dead[:1]
    assert await reader.open_keys(10) == opened


async def test_a_registry_of_another_type_is_no_traceback(stage: Stage, reader: Reader) -> None:
    stage.redis.delete("ran:jobs")
    stage.redis.set("ran:jobs", "no hash")
    with pytest.raises(StoreUnavailable, match="a key of the namespace 'ran' is of another type"):
        await reader.job_names()


async def test_a_redis_that_is_away_is_unavailable() -> None:
    store = AsyncStore("redis://:hunter2@127.0.0.1:1/0", NAMESPACE)
    with pytest.raises(StoreUnavailable) as caught:
        await Reader(store, NAMESPACE).job_names()
    await store.close()
    assert "hunter2" not in str(caught.value)


async def test_the_end_of_a_run_remembers_when_it_began(stage: Stage, reader: Reader) -> None:
    postponed, failed, silent = stage.running(), stage.running(stage.job(on_failure="again")), stage.running()
    stage.postpone(postponed)
    stage.fail(failed)
    stage.swept(silent.slip.key)
    waiting = stage.claimed(stage.job(on_failure="again"))
    stage.reject(waiting.key)
    keys = [run.slip.key for run in (postponed, failed, silent)]
    for kept in await reader.slots(keys):
        assert kept.record is not None
        assert kept.record.past[0].began == kept.record.numbers.began > 0
        assert kept.record.past[0].at >= kept.record.past[0].began
    (kept,) = await reader.slots([waiting.key])
    assert kept.record is not None
    assert [event.began for event in kept.record.past] == [0]
