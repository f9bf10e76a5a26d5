"""`slotqueue backfill`: past slots, oldest first; what is done stays done, and a second call goes on."""

from __future__ import annotations

import io
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slotqueue import SlotQueue
from slotqueue.answers import Offer
from slotqueue.cli.backfill import _bar
from slotqueue.errors import ConfigurationError
from slotqueue.ops import Progress, Site, audit, backfill, pause, survey
from slotqueue.ops.operator import operator
from slotqueue.schedules import Every
from slotqueue.slots import Slot, key_at
from tests.cli.conftest import Slotqueue, Start
from tests.cli.test_ops import Fake
from tests.store.registering import hourly_job, register
from tests.store.stage import HOUR, NAMESPACE, Stage

WriteApp = Callable[..., None]
ROLLUP = 'slots.add("rollup", Every(hours=1), task="do_rollup")\n'
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=30)
RANGE = ("--from", START.isoformat(), "--to", (START + timedelta(hours=6)).isoformat())


def key(hour: int, name: str = "rollup") -> str:
    return key_at(NAMESPACE, name, START + timedelta(hours=hour))


def slot(hour: int, name: str = "rollup") -> Slot:
    at = START + timedelta(hours=hour)
    return Slot(key_at(NAMESPACE, name, at), name, at, at - timedelta(hours=1))


@pytest.fixture
def known(stage: Stage) -> Stage:
    register(stage, hourly_job())
    return stage


@pytest.fixture
def mixed(known: Stage) -> Stage:
    """Six slots: none, done, skipped, dead, none, done without a record."""
    job = known.job()
    known.finish(known.running(job, slot(1)))
    known.pause()
    known.claim(Offer(job, slot(2)))
    known.redis.delete("ran:pauses")
    known.fail(known.running(job, slot(3)))
    known.redis.set(f"{key(5)}:done", "w1", ex=60)
    return known


def told(slotqueue: Slotqueue, *words: str) -> Any:
    result = slotqueue("backfill", "app:slots", "rollup", *RANGE, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_dry_run_tells_done_from_no_record_and_changes_nothing(
    write_app: WriteApp, slotqueue: Slotqueue, mixed: Stage, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    before = mixed.snapshot()
    found = told(slotqueue, "--dry-run")
    assert found["standing"] == {"no record": 2, "done": 2, "skipped": 1, "dead": 1}
    assert found["wanted"] == [key(0), key(2), key(4)]
    assert found["done"] is None
    text = slotqueue("backfill", "app:slots", "rollup", *RANGE, "--dry-run").stdout
    assert "2  no record" in text
    assert "3 slots would run" in text
    assert mixed.snapshot() == before


def test_the_slots_go_out_oldest_first_and_a_second_call_finds_them_on_their_way(
    write_app: WriteApp, slotqueue: Slotqueue, mixed: Stage, redis_url: str
) -> None:
    write_app(ROLLUP, redis_url)
    result = slotqueue("backfill", "app:slots", "rollup", *RANGE, "--rate", "100/s")
    assert result.exit_code == 0
    assert result.stdout.endswith("3 slots to run: claimed 3\n")
    record = mixed.record(key(0))
    assert (record["by"], mixed.past(key(0))) == (operator(), [f"backfilled by {operator()}"])
    assert int(record["fire"]) - int(record["start"]) == HOUR
    assert mixed.past(key(2))[-1].startswith(f"retried by {operator()}, was skipped")
    assert told(slotqueue)["done"] == {}
    swept = slotqueue("sweep", "app:slots").stdout
    assert f"enqueuing {key(0)} {key(2)} {key(4)}" in swept


def test_one_that_is_broken_off_goes_on_where_it_stopped(
    start: Start, slotqueue: Slotqueue, known: Stage, redis_url: str
) -> None:
    words = ("backfill", "rollup", *RANGE, "--redis", redis_url)
    first = start(*words, "--rate", "1/min")
    until = time.monotonic() + 60
    while known.state(key(0)) is None:
        assert first.process.poll() is None, first.err
        assert time.monotonic() < until
    code, seconds = first.stop(signal.SIGINT)
    assert (code, first.out) == (130, "")
    assert "broken off by SIGINT: 1 of 6 slots are on their way; call it again, and it goes on" in first.err
    assert seconds < 5
    result = slotqueue(*words)
    assert result.stdout.splitlines()[1:] == ["       5  no record", "       1  claimed", "5 slots to run: claimed 5"]


def test_a_terminal_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with _bar(3) as show:
        show(Progress(3, Counter(claimed=2), 1, "1 slot to end"))
    assert "2/3" in terminal.getvalue()
    assert "waits for 1 slot to end" in terminal.getvalue()


def _app(url: str, **policy: Any) -> SlotQueue:
    app = SlotQueue(url, enqueuer=Fake())
    app.add("rollup", Every(hours=1), task="do_rollup", on_crash="complete", **policy)
    return app


@pytest.mark.parametrize("policy, max_open", [({}, 2), ({"overlap": "forbid"}, None), ({"overlap": "hold"}, 5)])
async def test_no_more_than_so_many_are_open_at_once(
    known: Stage, redis_url: str, policy: dict[str, Any], max_open: int | None
) -> None:
    app = _app(redis_url, **policy)
    site = Site.of(app)
    most = 0

    def end_some(progress: Progress) -> None:
        nonlocal most
        opened = known.redis.zrange("ran:open", 0, -1)
        most = max(most, len(opened))
        for each in opened:
            if progress.waits_for:
                known.redis.hset(f"{each}:record", "state", "done")
                known.redis.zrem("ran:open", each)

    found = await survey(site, "rollup", START, START + timedelta(hours=5))
    done = await backfill(site, found, max_open=max_open, on_progress=end_some)
    await site.close()
    assert done.counts == {"claimed": 5}
    assert most == (2 if max_open == 2 else 1)


async def test_a_backfill_waits_for_a_slot_of_the_schedule_that_is_in_its_way(known: Stage, redis_url: str) -> None:
    app = _app(redis_url, overlap="forbid")
    site = Site.of(app)
    other = known.claimed(known.job(overlap="forbid"), known.slot(known.job(), ago=0))
    told: list[Progress] = []

    def end_it(progress: Progress) -> None:
        told.append(progress)
        if known.redis.zscore("ran:open", other.key):
            known.lose(other.key)

    found = await survey(site, "rollup", START, START + timedelta(hours=1))
    done = await backfill(site, found, on_progress=end_it)
    await site.close()
    assert (told[0].decided, done.counts) == (0, {"claimed": 1})


async def test_an_instant_without_a_zone_is_refused(redis_url: str) -> None:
    site, naive = Site.of(_app(redis_url)), datetime(2026, 10, 2)
    for asked in (
        survey(site, "rollup", naive, START),
        survey(site, "rollup", START, naive),
        audit(site, since=naive),
        pause(site, None, until=naive),
    ):
        with pytest.raises(ConfigurationError, match="has no zone"):
            await asked
    await site.close()


async def test_limits_and_a_pause_are_refused(known: Stage, redis_url: str) -> None:
    site = Site.of(_app(redis_url))
    found = await survey(site, "rollup", START, START + timedelta(hours=2))
    with pytest.raises(ConfigurationError, match="max_open: 0 is below 1"):
        await backfill(site, found, max_open=0)
    with pytest.raises(ConfigurationError, match="rate: 0 is no rate"):
        await backfill(site, found, rate=0)
    known.pause()
    with pytest.raises(ConfigurationError, match="it is paused; resume it"):
        await backfill(site, found)
    await site.close()
    assert known.all_keys().count(key(0)) == 0


@pytest.mark.parametrize(
    "words, message",
    [
        (["--from", "2026-10-02", "--to", "2026-10-01"], "to: 2026-10-01T00:00:00Z is not after 2026-10-02T00:00:00Z"),
        (["--from", "2026-10-02", "--to", "2999-01-01"], "has not come"),
        (["--from", "1970-01-02", "--to", "2026-10-01"], "there are more than 10000 slots"),
        (["--from", "2026-10-01T00:10", "--to", "2026-10-01T00:20"], "does not fire from"),
        (["--from", "2026-10-01", "--to", "2026-10-02", "--most", "23"], "there are more than 23 slots"),
        (["--from", "yesterday", "--to", "2026-10-02"], "'yesterday' is no instant"),
        (["--from", "2026-10-01", "--to", "2026-10-02", "--rate", "fast"], "'fast' is no rate"),
        (["--from", "2026-10-01", "--to", "2026-10-02", "--max-open", "0"], "0 is not in the range"),
    ],
)
def test_a_bad_range_or_limit_is_2(
    write_app: WriteApp, slotqueue: Slotqueue, known: Stage, redis_url: str, words: list[str], message: str
) -> None:
    write_app(ROLLUP, redis_url)
    result = slotqueue("backfill", "app:slots", "rollup", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.replace("\n", " ")


def test_no_code_is_needed_and_an_unknown_job_is_2(slotqueue: Slotqueue, mixed: Stage, redis_url: str) -> None:
    result = slotqueue("backfill", "rollup", *RANGE, "--redis", redis_url)
    assert (result.exit_code, result.stdout.endswith("3 slots to run: claimed 3\n")) == (0, True)
    assert mixed.record(key(0))["task"] == "arq:do_rollup"
    result = slotqueue("backfill", "rolup", *RANGE, "--redis", redis_url)
    assert (result.exit_code, "did you mean 'rollup'?" in result.stderr) == (2, True)
