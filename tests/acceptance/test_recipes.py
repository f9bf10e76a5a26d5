"""The recipes, and the "Verify" lines of both guides for them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from arq import create_pool
from arq.connections import RedisSettings
from redis.asyncio import Redis

from slotqueue import slot_key
from slotqueue.errors import ConfigurationError, InvalidSlotKey
from slotqueue.recipes import enqueue_once, run_exclusive, run_once, run_to_completion, sweep
from tests.waiting import eventually

AT = datetime(2026, 10, 2, 3, 0, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY = slot_key("rollup", AT, HOUR)


@pytest.fixture
async def r(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


class Work:
    """A job that counts its runs, and can be held up."""

    def __init__(self, *, is_held: bool = False) -> None:
        self.runs = self.ends = 0
        self.began, self.go = asyncio.Event(), asyncio.Event()
        if not is_held:
            self.go.set()

    async def __call__(self) -> None:
        self.runs += 1
        self.began.set()
        await self.go.wait()
        self.ends += 1


def test_the_signatures_are_the_guides() -> None:
    guides: dict[Callable[..., Any], str] = {
        run_once: "r job scheduled period fn",
        run_to_completion: "r job scheduled period fn lease_s",
        sweep: "r job period fn lookback",
        enqueue_once: "r arq job scheduled period args",
    }
    for recipe, names in guides.items():
        assert list(inspect.signature(recipe).parameters)[: len(names.split())] == names.split()


async def test_five_replicas_fire_ten_slots_and_each_runs_once_where_it_was_claimed(r: Redis) -> None:
    """With all replicas running, each slot's job runs once and the claiming replica is recorded."""
    ran: list[tuple[str, str]] = []

    async def fire(replica: str, slot: int, late: int) -> bool:
        at = AT + slot * HOUR + timedelta(seconds=late)

        async def work() -> None:
            ran.append((slot_key("rollup", at, HOUR), replica))

        return await run_once(r, "rollup", at, HOUR, work, replica=replica)

    fired = await asyncio.gather(*(fire(f"replica-{i}", slot, 60 * i) for slot in range(10) for i in range(5)))
    assert fired.count(True) == len(ran) == len({key for key, _ in ran}) == 10
    assert fired.count(False) == 40
    for key, replica in ran:
        assert await r.get(key) == replica
        assert await r.ttl(key) > 3 * 3600


async def test_a_local_instant_in_autumn_has_the_key_of_its_utc_hour(r: Redis) -> None:
    """Local time in slot keys: daylight-saving changes duplicate or skip slots. A naive instant is refused."""
    work = Work()
    first = datetime.fromisoformat("2026-10-25T02:30:00+02:00")
    second = datetime.fromisoformat("2026-10-25T02:30:00+01:00")
    for at in (first, second, second.astimezone(UTC)):
        await run_once(r, "rollup", at, HOUR, work)
    assert work.runs == 2
    with pytest.raises(InvalidSlotKey, match="no time zone"):
        await run_once(r, "rollup", datetime(2026, 10, 2, 3), HOUR, work)


_KILLED = """
import asyncio, json, sys
from datetime import datetime, timedelta
from redis.asyncio import Redis
from slotqueue.recipes import run_exclusive, run_once, run_to_completion

url, at = sys.argv[1], datetime.fromisoformat(sys.argv[2])

async def main():
    barrier = asyncio.Barrier(3)
    async def work():
        await barrier.wait()
        print("in it", flush=True)
        await asyncio.Event().wait()
    async with Redis.from_url(url) as r:
        await asyncio.gather(
            run_once(r, "digest", at, timedelta(hours=1), work),
            run_to_completion(r, "rollup", at, timedelta(hours=1), work, lease_s=60),
            run_exclusive(r, "rollup", work, lease_s=60),
        )

asyncio.run(main())
"""


async def test_a_killed_runners_slot_is_skipped_or_completed_by_another_replica(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kill the runner mid-job: at most once, the slot is skipped and logged; else another completes it after the lease.

    Crash a run, then let the next tick fire; the missed slot completes, and the current slot runs too.
    """
    caplog.set_level(logging.INFO, "slotqueue.recipes")
    async with Redis.from_url(redis_url) as r:
        seconds, _ = await r.time()
        crashed = datetime.fromtimestamp(seconds, UTC) - HOUR
        arguments = [redis_url, crashed.isoformat()]
        runner = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _KILLED, *arguments, stdout=asyncio.subprocess.PIPE
        )
        assert runner.stdout
        for _ in range(3):
            assert await runner.stdout.readline() == b"in it\n"
        runner.send_signal(signal.SIGKILL)
        await runner.wait()
        skipped, completed = Work(), Work()
        assert not await run_once(r, "digest", crashed, HOUR, skipped)
        assert skipped.runs == 0
        assert f"skipping {slot_key('digest', crashed, HOUR)}" in caplog.text
        assert not await run_to_completion(r, "rollup", crashed, HOUR, completed), "its lease still stands"
        assert not await run_exclusive(r, "rollup", completed)
        for lease in (f"{slot_key('rollup', crashed, HOUR)}:lease", "ran:rollup:lock"):
            assert 0 < await r.pttl(lease) <= 60_000
            assert await r.delete(lease), "as when its time is over"
        assert await sweep(r, "rollup", HOUR, completed, lookback=1) == completed.runs == 2
        assert await sweep(r, "rollup", HOUR, completed, lookback=1) == 0
        assert await run_exclusive(r, "rollup", completed)


class Paused:
    """A client that is held up before its n-th command, until another replica has done its part."""

    def __init__(self, r: Redis, before: int, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._r, self._left, self._meanwhile = r, before, meanwhile

    async def set(self, *args: Any, **kwargs: Any) -> Any:
        await self._pause()
        return await self._r.set(*args, **kwargs)

    async def exists(self, *args: Any) -> Any:
        await self._pause()
        return await self._r.exists(*args)

    def register_script(self, script: str) -> Any:
        return self._r.register_script(script)

    async def _pause(self) -> None:
        self._left -= 1
        if self._left == 0:
            await self._meanwhile()


async def as_the_guide_has_it(
    r: Any, job: str, at: datetime, period: timedelta, fn: Callable[[], Awaitable[object]]
) -> bool:
    """The guide's order: the done marker first, then the lease."""
    base = slot_key(job, at, period)
    if await r.exists(base + ":done"):
        return False
    if not await r.set(base + ":lease", "me", nx=True, ex=60):
        return False
    await fn()
    await r.set(base + ":done", "me")
    return True


async def _runs_with_a_pause(r: Redis, recipe: Any, before: int) -> int:
    """How often a slot runs where one replica pauses, and another one completes it meanwhile if it can."""
    await r.flushdb()
    work = Work()

    async def another() -> None:
        if await recipe(r, "rollup", AT, HOUR, work):
            await r.delete(f"{KEY}:lease")  # the pause outlasts its lease

    await recipe(Paused(r, before, another), "rollup", AT, HOUR, work)
    assert await r.exists(f"{KEY}:done")
    return work.runs


async def test_a_replica_that_pauses_anywhere_repeats_no_slot_that_another_completed(r: Redis) -> None:
    assert [await _runs_with_a_pause(r, run_to_completion, before) for before in (1, 2)] == [1, 1]


async def test_with_the_guides_order_a_pause_between_look_and_lease_repeats_the_slot(r: Redis) -> None:
    """This is what the order of `run_to_completion` is for."""
    assert [await _runs_with_a_pause(r, as_the_guide_has_it, before) for before in (1, 2)] == [1, 2]


async def test_done_markers_outlive_every_sweep_that_asks_for_them(r: Redis) -> None:
    """The guide keeps them for three periods and looks back over three slots: the oldest one runs again."""
    work = Work()
    day = timedelta(days=1)
    await run_to_completion(r, "rollup", AT, day, work)
    left = timedelta(milliseconds=await r.pttl(f"{slot_key('rollup', AT, day)}:done"))
    assert left > (8 + 1) * day
    await sweep(r, "rollup", day, work, lookback=8)
    with pytest.raises(ConfigurationError, match="job 'rollup', lookback: 9 is not between 0 and 8"):
        await sweep(r, "rollup", day, work, lookback=9)


async def _is_above_2500_ms(r: Redis, *, wanted: bool) -> bool:
    return bool(await r.pttl(f"{KEY}:lease") > 2500) is wanted


async def test_the_lease_is_renewed_while_the_function_runs(r: Redis) -> None:
    work = Work(is_held=True)
    running = asyncio.create_task(run_to_completion(r, "rollup", AT, HOUR, work, lease_s=3))
    await work.began.wait()
    for _ in range(4):  # renewed each third of it, it has outlived itself by then
        for wanted in (False, True):
            await eventually(partial(_is_above_2500_ms, r, wanted=wanted))
        assert not await run_to_completion(r, "rollup", AT, HOUR, work)
    work.go.set()
    assert await running
    assert work.runs == work.ends == 1
    assert not await r.exists(f"{KEY}:lease"), "no slot waits for a lease that has done its duty"


@pytest.mark.parametrize("loss", ["taken over", "gone", "unreachable"])
async def test_a_run_that_lost_its_lease_is_cancelled_and_leaves_no_done_marker(
    loss: str, r: Redis, redis_url: str
) -> None:
    work = Work(is_held=True)
    own = Redis.from_url(redis_url)
    running = asyncio.create_task(run_to_completion(own, "rollup", AT, HOUR, work, lease_s=0.3))
    await work.began.wait()
    if loss == "taken over":
        await r.set(f"{KEY}:lease", "another")
    elif loss == "gone":
        await r.delete(f"{KEY}:lease")
    else:
        await r.execute_command("CLIENT", "PAUSE", "600", "ALL")
    assert not await running
    assert work.runs == 1
    assert work.ends == 0
    assert not await r.exists(f"{KEY}:done")
    if loss == "taken over":
        assert await r.get(f"{KEY}:lease") == "another"
    await own.aclose()


async def test_a_run_that_ends_after_it_lost_its_lease_writes_no_done_marker(r: Redis) -> None:
    async def work() -> None:
        await r.set(f"{KEY}:lease", "another")

    assert not await run_to_completion(r, "rollup", AT, HOUR, work)
    assert not await r.exists(f"{KEY}:done")
    assert await r.get(f"{KEY}:lease") == "another"


async def test_a_cancelled_run_hands_its_slot_back_and_a_failed_one_waits_for_its_lease(r: Redis) -> None:
    work = Work(is_held=True)
    running = asyncio.create_task(run_to_completion(r, "rollup", AT, HOUR, work))
    await work.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not await r.exists(f"{KEY}:lease", f"{KEY}:done")

    async def fails() -> None:
        raise ValueError("no data")

    with pytest.raises(ValueError, match="no data"):
        await run_to_completion(r, "rollup", AT, HOUR, fails)
    assert not await r.exists(f"{KEY}:done")
    assert not await run_to_completion(r, "rollup", AT, HOUR, work), "not again at once"


async def test_a_slot_that_fails_keeps_no_newer_one_from_running(r: Redis) -> None:
    work = Work()

    async def fails_once() -> None:
        await work()
        if work.runs == 1:
            raise ValueError("no data")

    with pytest.raises(ExceptionGroup, match="1 of 4 slots of 'rollup' failed"):
        await sweep(r, "rollup", HOUR, fails_once)
    assert work.runs == 4


async def test_one_job_is_enqueued_however_many_replicas_fire(r: Redis, redis_url: str) -> None:
    """For each scheduled job, duplicates are prevented at one layer: here by the claim, and again by the job id."""
    arq = await create_pool(RedisSettings.from_dsn(redis_url))
    won = [await enqueue_once(r, arq, "rollup", AT, HOUR, "all", 3) for _ in range(5)]
    assert won == [True, *[False] * 4]
    await r.delete(KEY)
    assert await enqueue_once(r, arq, "rollup", AT, HOUR, "all", 3)
    (queued,) = await arq.queued_jobs()
    assert (queued.job_id, queued.function, queued.args) == (KEY, "rollup", ("all", 3))
    await arq.aclose()


async def test_only_one_holds_the_lock_and_nobody_releases_anothers(r: Redis) -> None:
    """The lock's value is a token, its release compares it: a lock that ran out and was taken anew stays."""
    work = Work(is_held=True)
    holder = asyncio.create_task(run_exclusive(r, "billing", work, lease_s=3))
    await work.began.wait()
    assert not any([await run_exclusive(r, "billing", work) for _ in range(4)])
    await r.set("ran:billing:lock", "another")
    assert not await holder, "it was lost"
    assert work.ends == 0
    assert await r.get("ran:billing:lock") == "another"
    await r.delete("ran:billing:lock")

    async def fails() -> None:
        raise ValueError("no data")

    with pytest.raises(ValueError, match="no data"):
        await run_exclusive(r, "billing", fails)
    work.go.set()
    assert await run_exclusive(r, "billing", work), "an error released it"


@pytest.mark.parametrize("lease_s", [0, -1, float("nan")])
async def test_a_lease_that_is_not_positive_is_refused(lease_s: float, r: Redis) -> None:
    with pytest.raises(ConfigurationError, match="is not positive; say seconds"):
        await run_to_completion(r, "rollup", AT, HOUR, Work(), lease_s)


async def test_the_recipes_share_the_keys_of_a_slotqueue(r: Redis) -> None:
    """What a recipe has claimed or completed, a `SlotQueue` of the same namespace does not run again."""
    await run_to_completion(r, "rollup", AT, HOUR, Work(), namespace="shop")
    await run_once(r, "digest", AT, HOUR, Work(), namespace="shop")
    assert sorted(await r.keys("shop:*")) == ["shop:digest:2026-10-02T03:00", "shop:rollup:2026-10-02T03:00:done"]


def test_the_example_of_the_document_runs(redis_url: str) -> None:
    document = Path(__file__).parents[2] / "docs" / "recipes.md"
    example = re.search(r"<!-- example -->\n```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    assert example
    code = example[1].replace("redis://localhost:6379/0", redis_url)
    code = code.replace("timedelta(hours=1)", "timedelta(days=365)")  # or an hour may strike between two runs
    for expected in (["rolling up"] * 4 + ["sending the digest"], []):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.splitlines() == expected
