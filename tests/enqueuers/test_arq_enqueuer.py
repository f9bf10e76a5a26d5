"""`ArqEnqueuer` against a real server, without workers."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis.asyncio
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.jobs import DeserializationError, deserialize_job_raw, serialize_result
from arq.worker import JobExecutionFailed

from slotqueue.enqueuers.arq import ArqEnqueuer, enqueuer
from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Message, NotBefore, Refused, Slip, Waiting
from slotqueue.policy import Policy, terms_of
from tests.servers import Server
from tests.stopwatch import Stopwatch

FIRE = 1_796_000_000_000
DAY_MS = 86_400_000


def message(job: str = "digest", *, n: int = 0, before: str = "", retention: timedelta | None = None) -> Message:
    terms = terms_of(job, Policy(on_crash="complete", retention=retention), timedelta(hours=1)).text
    slip = Slip(f"ran:{job}:2026-11-30T09:00", n, FIRE, FIRE - 3_600_000, "arq:send", "v1", terms)
    return Message(slip, "send", ("ann",), {"kind": "short"}, None, before)


@pytest.fixture
async def arq(redis_url: str) -> AsyncIterator[ArqEnqueuer]:
    found = ArqEnqueuer(RedisSettings.from_dsn(redis_url))
    yield found
    await found.close()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Any]:
    async with redis.asyncio.Redis.from_url(redis_url) as found:
        yield found


async def test_a_pool_of_its_own_packs_in_c_from_its_first_connection_on(arq: ArqEnqueuer) -> None:
    await arq.enqueue([message()])
    (pool,) = arq._own_pools.values()
    connection = await pool.connection_pool.get_connection()
    assert connection.is_connected, "the one that enqueued"
    assert "pack_command" in vars(type(connection))
    await pool.connection_pool.release(connection)


# ---- what it writes


async def test_a_worker_without_the_guard_reads_the_payload_as_any_other(arq: ArqEnqueuer, client: Any) -> None:
    sent = message()
    assert await arq.enqueue([sent]) == [Accepted(is_new=True)]
    payload = await client.get(f"arq:job:{sent.slip.key}")
    function, args, kwargs, job_try, _ = deserialize_job_raw(payload)
    assert [function, args, kwargs, job_try] == ["send", ("ann",), {"kind": "short"}, None]
    assert Slip.from_json(pickle.loads(payload)["slot"]) == sent.slip


async def test_the_message_is_due_now_by_the_clock_of_the_queues_redis(
    arq: ArqEnqueuer, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 4e9)
    monkeypatch.setattr("slotqueue.enqueuers.arq.enqueuer.time", lambda: 4e9)
    await arq.enqueue([message()])
    monkeypatch.undo()
    seconds, _ = await client.time()
    assert abs(await client.zscore("arq:queue", message().slip.key) / 1000 - seconds) < 5


async def test_a_message_ahead_of_its_time_waits_in_the_queue_for_it(arq: ArqEnqueuer, client: Any) -> None:
    seconds, _ = await client.time()
    soon, past = (seconds + 60) * 1000, (seconds - 60) * 1000
    sent = [
        replace(message(name, n=n), not_before=NotBefore(at, 0.0))
        for n in (0, 1)
        for name, at in ((f"ahead-{n}", soon), (f"in-time-{n}", past))
    ]
    assert await arq.enqueue(sent) == [Accepted()] * 4
    for each in sent:
        score = await client.zscore("arq:queue", each.slip.key)
        assert score == soon if "ahead" in each.slip.key else seconds * 1000 <= score < soon


@pytest.mark.parametrize("retention, expected", [(timedelta(hours=6), DAY_MS), (timedelta(days=9), 9 * DAY_MS)])
async def test_the_message_lives_as_long_as_its_slot_and_a_day_at_least(
    arq: ArqEnqueuer, client: Any, retention: timedelta, expected: int
) -> None:
    sent = message(retention=retention)
    await arq.enqueue([sent])
    assert expected - 5000 < await client.pttl(f"arq:job:{sent.slip.key}") <= expected


async def test_answers_come_in_the_order_of_the_messages(arq: ArqEnqueuer) -> None:
    sent = [message(f"job-{i}") for i in range(enqueuer.BATCH + 300)]
    await arq.enqueue(sent[5:6])
    await arq.enqueue(sent[-1:])
    answers = await arq.enqueue(sent)
    assert [i for i, answer in enumerate(answers) if answer != Accepted(is_new=True)] == [5, len(sent) - 1]


async def test_each_message_goes_to_its_own_queue(arq: ArqEnqueuer, client: Any) -> None:
    sent = [message("a"), replace(message("b"), queue="heavy"), message("c")]
    await arq.enqueue(sent)
    assert await client.zrange("arq:queue", 0, -1) == [b"ran:a:2026-11-30T09:00", b"ran:c:2026-11-30T09:00"]
    assert await client.zrange("heavy", 0, -1) == [b"ran:b:2026-11-30T09:00"]


async def test_no_messages_are_no_work(arq: ArqEnqueuer) -> None:
    assert await arq.enqueue([]) == []


# ---- ids that are there already


async def test_a_message_that_the_queue_holds_is_accepted_and_not_doubled(arq: ArqEnqueuer, client: Any) -> None:
    await arq.enqueue([message()])
    assert await arq.enqueue([message()]) == [Accepted(is_new=False)]
    assert await client.zcard("arq:queue") == 1


async def test_a_payload_without_its_place_in_the_queue_gets_it_back(arq: ArqEnqueuer, client: Any) -> None:
    await arq.enqueue([message()])
    await client.delete("arq:queue")
    assert await arq.enqueue([message()]) == [Accepted(is_new=False)]
    assert await client.zcard("arq:queue") == 1


async def test_a_kept_result_refuses_the_first_enqueue(arq: ArqEnqueuer, client: Any) -> None:
    await client.set(f"arq:result:{message().slip.key}", b"whatever")
    (answer,) = await arq.enqueue([message()])
    assert isinstance(answer, Refused)
    assert "result" in answer.problem
    assert not answer.is_sent_possible
    assert not await client.exists("arq:queue", f"arq:job:{message().slip.key}")


async def test_enqueueing_again_clears_what_an_earlier_run_left(arq: ArqEnqueuer, client: Any) -> None:
    key = message().slip.key
    await client.mset({f"arq:result:{key}": b"failed", f"arq:retry:{key}": 5, f"arq:in-progress:{key}": b"1"})
    await client.zadd("arq:abort", {key: 1})
    assert await arq.enqueue([message(n=1, before="running")]) == [Accepted(is_new=True)]
    assert not await client.exists(*(f"arq:{word}:{key}" for word in ("result", "retry", "in-progress")), "arq:abort")


async def test_a_worker_that_may_be_about_to_begin_is_not_disturbed(arq: ArqEnqueuer, client: Any) -> None:
    key = message().slip.key
    await client.set(f"arq:in-progress:{key}", b"1")
    await arq.enqueue([message(n=1, before="queued")])
    assert await client.exists(f"arq:in-progress:{key}")


async def test_enqueueing_again_brings_a_deferred_message_forward_and_never_back(arq: ArqEnqueuer, client: Any) -> None:
    key = message().slip.key
    await arq.enqueue([message()])
    await client.zadd("arq:queue", {key: 4e12})
    await arq.enqueue([message(n=1, before="postponed")])
    assert await client.zscore("arq:queue", key) < 3e12
    await client.zadd("arq:queue", {key: 17})
    await arq.enqueue([message(n=2, before="queued")])
    assert await client.zscore("arq:queue", key) == 17


# ---- what goes wrong


async def test_arguments_that_do_not_serialise_are_refused_alone(arq: ArqEnqueuer) -> None:
    bad = replace(message("bad"), kwargs={"f": lambda: None})
    answers = await arq.enqueue([message("a"), bad, message("b")])
    assert answers[0] == answers[2] == Accepted(is_new=True)
    assert isinstance(answers[1], Refused)
    assert not answers[1].is_sent_possible


async def test_a_queue_of_another_type_refuses_its_messages_alone(arq: ArqEnqueuer, client: Any) -> None:
    await client.set("odd", "no queue")
    answers = await arq.enqueue([message("a"), replace(message("b"), queue="odd"), message("c")])
    assert answers[0] == answers[2] == Accepted(is_new=True)
    assert isinstance(answers[1], Refused)
    assert "WRONGTYPE" in answers[1].problem


async def test_a_refused_connection_certainly_sent_nothing(own_server: Server) -> None:
    settings = RedisSettings.from_dsn(own_server.url)
    own_server.stop()
    for host in ("127.0.0.1", "localhost"):
        arq = ArqEnqueuer(replace(settings, host=host))
        (answer,) = await arq.enqueue([message()])
        assert isinstance(answer, Refused)
        assert not answer.is_sent_possible
        await arq.close()


@pytest.mark.slow
async def test_a_server_that_falls_silent_costs_five_seconds_at_most(own_server: Server) -> None:
    arq = ArqEnqueuer(RedisSettings.from_dsn(own_server.url))
    await arq.enqueue([message("a")])
    own_server.pause()
    with Stopwatch() as watch:
        answers = await arq.enqueue([message(f"b{i}") for i in range(enqueuer.BATCH + 1)])
    assert watch.seconds < 5.5
    assert all(isinstance(answer, Refused) for answer in answers)
    assert [answers[0].is_sent_possible, answers[-1].is_sent_possible] == [True, False]  # type: ignore[union-attr]
    with Stopwatch() as watch:
        await arq.close()
    assert watch.seconds < 5.5
    own_server.resume()


@pytest.mark.slow
async def test_a_server_that_is_silent_from_the_start_costs_five_seconds_at_most(own_server: Server) -> None:
    own_server.pause()
    arq = ArqEnqueuer(RedisSettings.from_dsn(own_server.url))
    with Stopwatch() as watch:
        (answer,) = await arq.enqueue([message()])
    assert watch.seconds < 5.5
    assert isinstance(answer, Refused)
    assert not answer.is_sent_possible
    own_server.resume()
    assert await arq.enqueue([message()]) == [Accepted(is_new=True)]
    await arq.close()


async def test_it_finds_a_server_that_was_started_again(own_server: Server) -> None:
    arq = ArqEnqueuer(RedisSettings.from_dsn(own_server.url))
    await arq.enqueue([message("a")])
    own_server.kill()
    assert isinstance((await arq.enqueue([message("b")]))[0], Refused)  # a lost connection: who knows what it carried
    (answer,) = await arq.enqueue([message("b")])
    assert isinstance(answer, Refused)
    assert not answer.is_sent_possible
    own_server.start()
    assert await arq.enqueue([message("c")]) == [Accepted(is_new=True)]
    await arq.close()


async def test_a_full_server_refuses_and_is_said_to_have_nothing(own_server: Server) -> None:
    arq = ArqEnqueuer(RedisSettings.from_dsn(own_server.url))
    await arq.enqueue([message("a")])
    own_server.ask("CONFIG SET maxmemory 1")
    (answer,) = await arq.enqueue([message()])
    assert isinstance(answer, Refused)
    assert not answer.is_sent_possible
    await arq.close()


async def test_each_event_loop_gets_connections_of_its_own(arq: ArqEnqueuer) -> None:
    async def once() -> Any:
        try:
            return await arq.enqueue([message("b")])
        finally:
            await arq.close()

    assert await arq.enqueue([message("a")]) == [Accepted(is_new=True)]
    assert await asyncio.to_thread(asyncio.run, once()) == [Accepted(is_new=True)]
    assert await arq.enqueue([message("c")]) == [Accepted(is_new=True)]


# ---- what it is given


async def test_a_pool_of_the_application_stays_open_and_lends_its_serializer(redis_url: str, client: Any) -> None:
    def dump(entries: dict[str, Any]) -> bytes:
        return json.dumps(entries).encode()

    pool = await create_pool(
        RedisSettings.from_dsn(redis_url), job_serializer=dump, job_deserializer=json.loads, default_queue_name="mine"
    )
    arq = ArqEnqueuer(pool)
    arq.use_default("redis://elsewhere:1/0")
    assert await arq.enqueue([message()]) == [Accepted(is_new=True)]
    assert json.loads(await client.get(f"arq:job:{message().slip.key}"))["f"] == "send"
    assert await client.zcard("mine") == 1
    await arq.close()
    assert await pool.ping()
    await pool.aclose(close_connection_pool=True)


async def test_the_default_is_the_redis_of_the_slotqueue(redis_url: str, client: Any) -> None:
    arq = ArqEnqueuer()
    arq.use_default(redis_url)
    arq.use_default("redis://elsewhere:1/0")
    await arq.enqueue([message()])
    assert await client.zcard("arq:queue") == 1
    await arq.close()


async def test_a_password_is_understood_and_never_shown(own_server: Server) -> None:
    own_server.ask("CONFIG SET requirepass p@ss:word%")
    right, wrong = ArqEnqueuer(), ArqEnqueuer()
    right.use_default(f"redis://:p%40ss%3Aword%25@127.0.0.1:{own_server.port}/0")
    wrong.use_default(f"redis://:sesame@127.0.0.1:{own_server.port}/0")
    assert await right.enqueue([message()]) == [Accepted(is_new=True)]
    (answer,) = await wrong.enqueue([message()])
    assert isinstance(answer, Refused)
    assert not answer.is_sent_possible
    for text in (repr(right), repr(wrong), str(answer)):
        assert "p@ss" not in text
        assert "sesame" not in text
    await right.close()
    await wrong.close()


def test_a_url_that_arq_cannot_read_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="cannot read the URL") as caught:
        ArqEnqueuer().use_default("http://:sesame@host/")
    assert "sesame" not in str(caught.value)


def job(**about: Any) -> Job:
    policy = Policy(on_crash="skip")
    return Job(name="j", schedule="s", task="t", enqueuer="arq", policy=policy, period=timedelta(hours=1), **about)


def test_check_names_the_argument_that_does_not_serialise() -> None:
    ArqEnqueuer().check(job(args=(1, "two"), kwargs={"three": [3]}))
    with pytest.raises(ConfigurationError, match=r"job 'j', args\[1\]"):
        ArqEnqueuer().check(job(args=(1, lambda: None)))
    with pytest.raises(ConfigurationError, match=r"job 'j', kwargs\['when'\]") as caught:
        ArqEnqueuer(job_serializer=lambda d: json.dumps(d).encode()).check(job(kwargs={"when": timedelta()}))
    assert caught.value.job == "j"


def test_check_refuses_a_serializer_that_would_lose_the_slip() -> None:
    def dump(entries: dict[str, Any]) -> bytes:
        return json.dumps({name: entries[name] for name in "tfak" if name in entries}).encode()

    with pytest.raises(ConfigurationError, match="drops the entry 'slot'"):
        ArqEnqueuer(job_serializer=dump, job_deserializer=json.loads).check(job())


# ---- what arq has given up


def result(value: object, *, success: bool = False) -> bytes:
    found = serialize_result("t", (), {}, 1, 0, success, value, 0, 0, "ref", "arq:queue", job_id="x")
    assert found is not None
    return found


@pytest.mark.parametrize(
    "state, kept, reason",
    [
        ("queued", result(JobExecutionFailed("function 'x' not found")), "arq gave it up: function 'x' not found"),
        ("queued", result(JobExecutionFailed("max 5 retries exceeded")), "arq gave it up: max 5 retries exceeded"),
        ("queued", result(JobExecutionFailed("job expired")), "arq gave it up: job expired"),
        ("queued", result(DeserializationError("unable")), "arq gave it up: unable"),
        ("queued", result(asyncio.CancelledError()), "aborted in arq"),
        ("queued", result(ValueError()), "arq gave it up: ValueError"),
        ("postponed", result(asyncio.CancelledError()), "aborted in arq"),
        ("postponed", result(JobExecutionFailed("max 5 retries exceeded")), None),
        ("postponed", result(JobExecutionFailed("job expired")), None),
        ("queued", result(None, success=True), None),
        ("queued", b"rubbish", None),
    ],
)
async def test_given_up_tells_what_arq_ended_without_a_word(
    arq: ArqEnqueuer, client: Any, state: str, kept: bytes, reason: str | None
) -> None:
    await client.set("arq:result:ran:a:2026-11-30T09:00", kept)
    waiting = [Waiting(f"ran:{name}:2026-11-30T09:00", state, 0, "arq:t") for name in ("a", "b")]
    expected = {} if reason is None else {"ran:a:2026-11-30T09:00": reason}
    assert await arq.given_up(waiting) == expected


async def test_given_up_finds_nothing_while_the_queue_is_away(own_server: Server) -> None:
    arq = ArqEnqueuer(RedisSettings.from_dsn(own_server.url))
    own_server.stop()
    assert await arq.given_up([Waiting("ran:a:2026-11-30T09:00", "queued", 0, "arq:t")]) == {}
    assert await arq.given_up([]) == {}


# ---- facts about arq that this rests on


async def test_fact_arq_answers_none_for_an_id_with_a_job_or_a_result(redis_url: str, client: Any) -> None:
    pool: ArqRedis = await create_pool(RedisSettings.from_dsn(redis_url))
    await client.set("arq:result:a", b"1")
    await client.set("arq:job:b", b"1")
    assert await pool.enqueue_job("t", _job_id="a") is None
    assert await pool.enqueue_job("t", _job_id="b") is None
    await pool.aclose(close_connection_pool=True)


def test_fact_arq_takes_the_password_of_a_url_with_its_escapes() -> None:
    assert RedisSettings.from_dsn("redis://:p%40ss@host").password == "p%40ss"
