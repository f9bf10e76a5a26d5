"""`CeleryEnqueuer` against real brokers, and against none."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import celery
import kombu
import pytest

from slotqueue import Every, Policy, SlotQueue
from slotqueue.enqueuers.celery import CeleryEnqueuer, guard_app
from slotqueue.errors import ConfigurationError
from slotqueue.messages import Accepted, Delivery, Message, NotBefore, Refused, Slip
from slotqueue.policy import terms_of
from slotqueue.slots import to_ms
from tests.rabbitmq import RabbitMQ, taken
from tests.servers import Server, free_port
from tests.stopwatch import Stopwatch
from tests.waiting import eventually

pytestmark = pytest.mark.processes

FIRE = datetime(2026, 11, 30, 9, tzinfo=UTC)
TERMS = terms_of("digest", Policy(on_crash="complete"), timedelta(hours=1)).text


def message(i: int = 0, **fields: Any) -> Message:
    fire, start = to_ms(FIRE), to_ms(FIRE - timedelta(hours=1))
    slip = Slip(f"ran:digest-{i}:2026-11-30T09:00", 0, fire, start, "celery:send_digest", "v1", TERMS)
    return replace(Message(slip, "send_digest", (7,), {"kind": "short"}, "slots"), **fields)


def app_for(url: str, **conf: Any) -> Any:
    app = celery.Celery("tests", broker=url, set_as_current=False)
    app.conf.update(conf)
    return app


@asynccontextmanager
async def enqueuer_for(url: str, **conf: Any) -> AsyncIterator[CeleryEnqueuer]:
    enqueuer = CeleryEnqueuer(app_for(url, **conf))
    try:
        yield enqueuer
    finally:
        await enqueuer.close()


class OwnWay(celery.Celery):  # type: ignore[misc]  # Celery is untyped
    def send_task(self, name: str, *args: Any, **options: Any) -> Any:
        options["headers"]["way"] = "its own"
        return super().send_task(name, *args, **options)


async def test_nobody_waits_for_the_results_of_messages_that_are_sent(redis_url: str, server: Server) -> None:
    server.ask("CONFIG RESETSTAT")
    async with enqueuer_for(redis_url, result_backend=redis_url) as enqueuer:
        assert await enqueuer.enqueue([message(i) for i in range(3)]) == [Accepted()] * 3
        assert "subscribe" not in server.ask("INFO commandstats")
        enqueuer.app.send_task("send_digest", task_id="a-user's-own")
        assert "cmdstat_subscribe:calls=1," in server.ask("INFO commandstats"), "others still do"


async def test_an_application_that_sends_in_a_way_of_its_own_does_so_here(redis_url: str) -> None:
    enqueuer = CeleryEnqueuer(OwnWay("tests", broker=redis_url, set_as_current=False))
    assert await enqueuer.enqueue([message()]) == [Accepted()]
    with enqueuer.app.connection_for_read() as connection:
        taken = connection.default_channel.basic_get("slots")
        assert taken.headers["way"] == "its own"
    await enqueuer.close()


@pytest.fixture(params=["redis", "rabbitmq"])
def broker_url(request: pytest.FixtureRequest, redis_url: str) -> str:
    url = redis_url if request.param == "redis" else request.getfixturevalue("rabbitmq").url
    assert isinstance(url, str)
    return url


async def timed(enqueuer: CeleryEnqueuer, messages: list[Message]) -> tuple[list[Delivery], float, float]:
    """The answers, the seconds they took, and for how long at most the event loop did not turn meanwhile."""
    gaps: list[float] = []
    with Stopwatch() as watch:

        async def turn() -> None:
            while True:
                before = watch.seconds
                await asyncio.sleep(0.01)
                gaps.append(watch.seconds - before)

        turning = asyncio.create_task(turn())
        await asyncio.sleep(0.02)  # or it would measure nothing of a loop that stands still at once
        before = watch.seconds
        answers = await enqueuer.enqueue(messages)
        seconds = watch.seconds - before
        await asyncio.sleep(0.02)
        turning.cancel()
    return list(answers), seconds, max(gaps, default=0.0)


async def test_a_message_ahead_of_its_time_is_in_the_queue_at_it(broker_url: str) -> None:
    taken(broker_url)
    async with enqueuer_for(broker_url) as enqueuer:
        await enqueuer.enqueue([message()])
        assert len(taken(broker_url)) == 1
        at = monotonic() + 1.5
        sending = asyncio.create_task(
            enqueuer.enqueue([message(1, not_before=NotBefore(0, at - 1)), message(2, not_before=NotBefore(0, at))])
        )
        while not (found := await asyncio.to_thread(taken, broker_url)):
            assert monotonic() < at + 20
        assert monotonic() >= at
        assert await sending == [Accepted()] * 2
        assert len(found) + len(taken(broker_url)) == 2


async def test_a_message_says_its_slot_and_leaves_the_result_to_the_task(broker_url: str) -> None:
    taken(broker_url)
    async with enqueuer_for(broker_url) as enqueuer:
        assert await enqueuer.enqueue([message()]) == [Accepted()]
    (sent,) = taken(broker_url)
    assert sent.headers["id"] == message().slip.key
    assert sent.headers["task"] == "send_digest"
    assert Slip.from_json(sent.headers["slotqueue"]) == message().slip
    assert sent.headers["slotqueue_fire_time"] == "2026-11-30T09:00:00+00:00"
    assert sent.headers["ignore_result"] is None
    assert sent.payload[:2] == [[7], {"kind": "short"}]


async def test_a_message_reads_as_celery_itself_writes_it(broker_url: str) -> None:
    exchange = kombu.Exchange("topics", "topic", delivery_mode=1)
    queues = [kombu.Queue("plain"), kombu.Queue("routed", exchange, "one.#")]
    routes = {"work": {"queue": "routed", "routing_key": "one.two", "priority": 4}}
    batch = [message(queue="plain"), message(1, task="work", queue=None), message(2, task="work", queue=None)]
    async with enqueuer_for(broker_url, task_queues=queues, task_routes=routes) as enqueuer:
        assert await enqueuer.enqueue(batch) == [Accepted()] * 3
        ours = [*taken(broker_url, "plain"), *taken(broker_url, "routed")]
        for each in batch:
            options = {"queue": each.queue} if each.queue else {}
            enqueuer.app.send_task(each.task, each.args, each.kwargs, task_id=each.slip.key, **options)
        theirs = [*taken(broker_url, "plain"), *taken(broker_url, "routed")]
    assert [said_by(each) for each in ours] == [said_by(each) for each in theirs]
    assert len(ours) == 3


def said_by(sent: Any) -> Any:
    """All that a message says, but for what a slot adds and what is another one in each."""
    of_slots, new = {"slotqueue", "slotqueue_fire_time", "ignore_result"}, {"origin", "delivery_tag", "reply_to"}
    headers = {name: value for name, value in sent.headers.items() if name not in of_slots | new}
    said_again = {"delivery_info", "application_headers"}
    properties = {name: value for name, value in sent.properties.items() if name not in new | said_again}
    return sent.payload, headers, properties, sent.delivery_info["exchange"], sent.delivery_info["routing_key"]


async def test_options_of_the_job_reach_the_message(broker_url: str) -> None:
    taken(broker_url)
    options = {"priority": 3, "expires": 90, "headers": {"tenant": "a"}, "time_limit": 30}
    far = to_ms(datetime.now(UTC))
    slip = replace(message().slip, fire=far)
    async with enqueuer_for(broker_url) as enqueuer:
        await enqueuer.enqueue([message(slip=slip, options=options)])
    (sent,) = taken(broker_url)
    assert sent.properties["priority"] == 3
    assert datetime.fromisoformat(sent.headers["expires"]) == datetime.fromtimestamp(far / 1000, UTC) + timedelta(
        seconds=90
    )
    assert sent.headers["tenant"] == "a"
    assert sent.headers["timelimit"] == [30, None]


async def test_many_go_out_in_order_and_one_that_does_not_serialise_alone_is_refused(broker_url: str) -> None:
    batch = [message(i) for i in range(500)]
    batch[100] = message(100, kwargs={"what": object()})
    async with enqueuer_for(broker_url) as enqueuer:
        for _ in range(5):  # a broker that the machine holds up for seconds may refuse all of it
            taken(broker_url)
            answers, _, gap = await timed(enqueuer, batch)
            if not all(isinstance(answer, Refused) for answer in answers):
                break
    refused = [i for i, answer in enumerate(answers) if isinstance(answer, Refused)]
    late = [i for i in refused if "not tried" in getattr(answers[i], "problem", "")]
    assert [i for i in refused if i not in late] == [100]
    assert "object" in str(answers[100])
    assert gap < 0.5
    expected = [m.slip.key for i, m in enumerate(batch) if i not in refused]
    assert [each.headers["id"] for each in taken(broker_url)] == expected


SECRET = "s3cret-of-the-house"


@pytest.mark.parametrize(
    "url",
    [
        f"redis://user:{SECRET}@127.0.0.1:1/0",
        f"rediss://user:{SECRET}@127.0.0.1:1/0",
        f"redis://user:{SECRET}/@127.0.0.1:1/0",
        f"redis://user:{SECRET}@127.0.0.1:1/0;redis://user:{SECRET}#@127.0.0.1:1/0",
        f"amqp://user:{SECRET}@127.0.0.1:1//",
        f"amqp://user:{SECRET}?@127.0.0.1:1//",
        f"amqp://user:[{SECRET}@127.0.0.1:1//",
        f"sentinel://user:{SECRET}@127.0.0.1:1/0",
        f"nonsense://user:{SECRET}@127.0.0.1:1/0",
    ],
)
async def test_a_broker_that_cannot_be_reached_or_read_keeps_its_password(url: str) -> None:
    async with enqueuer_for(url) as enqueuer:
        (answer,) = await enqueuer.enqueue([message()])
        said = f"{enqueuer!r} {enqueuer.place} {answer}"
    assert isinstance(answer, Refused)
    assert SECRET not in said


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
async def test_a_refused_broker_fails_at_once(scheme: str) -> None:
    async with enqueuer_for(f"{scheme}://127.0.0.1:{free_port()}/") as enqueuer:
        await enqueuer.enqueue([message()])  # the first call loads modules
        answers, seconds, _ = await timed(enqueuer, [message(i) for i in range(300)])
    assert seconds < 0.5
    assert {type(answer) for answer in answers} == {Refused}
    assert not any(answer.is_sent_possible for answer in answers if isinstance(answer, Refused))


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
async def test_a_broker_behind_a_black_hole_costs_a_few_seconds_and_never_the_loop(scheme: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        async with enqueuer_for(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/") as enqueuer:
            answers, seconds, gap = await timed(enqueuer, [message(i) for i in range(300)])
    assert seconds < 5
    assert gap < 0.5
    assert {type(answer) for answer in answers} == {Refused}


async def test_a_redis_broker_that_falls_silent_is_given_up_and_found_again(own_server: Server) -> None:
    async with enqueuer_for(own_server.url) as enqueuer:
        assert await enqueuer.enqueue([message()]) == [Accepted()]
        own_server.pause()
        answers, seconds, _ = await timed(enqueuer, [message(1), message(2)])
        assert seconds < 5
        assert isinstance(answers[0], Refused)
        assert answers[0].is_sent_possible
        own_server.resume()
        assert await enqueuer.enqueue([message(3)]) == [Accepted()]


@pytest.mark.slow
async def test_what_rabbitmq_does_not_confirm_counts_as_refused(rabbitmq: RabbitMQ) -> None:
    async with enqueuer_for(rabbitmq.url) as enqueuer:
        assert await enqueuer.enqueue([message()]) == [Accepted()]
        rabbitmq.pause()
        try:
            answers, seconds, _ = await timed(enqueuer, [message(1), message(2)])
        finally:
            rabbitmq.resume()
        assert seconds < 5
        assert [type(answer) for answer in answers] == [Refused, Refused]
        assert all(answer.is_sent_possible for answer in answers if isinstance(answer, Refused))
        assert await enqueuer.enqueue([message(3)]) == [Accepted()]
    taken(rabbitmq.url)


async def test_what_rabbitmq_turns_down_is_refused_and_the_rest_of_the_batch_is_not(rabbitmq: RabbitMQ) -> None:
    with kombu.Connection(rabbitmq.url) as connection:
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        kombu.Queue("full", kombu.Exchange("full"), "full", queue_arguments=full, channel=connection).declare()
    async with enqueuer_for(rabbitmq.url, task_queues=[kombu.Queue("full", no_declare=True)]) as enqueuer:
        batch = [message(1, queue="full"), message(2, queue="full"), message(3)]
        answers = await enqueuer.enqueue(batch)
    assert answers == [Accepted(), Refused("RabbitMQ refused it"), Accepted()]
    assert [each.headers["id"] for each in taken(rabbitmq.url)] == [batch[2].slip.key]


async def test_a_batch_uses_one_connection(redis_url: str, server: Server) -> None:
    async with enqueuer_for(redis_url) as enqueuer:
        await enqueuer.enqueue([message()])
        before = connections_of(server)
        await enqueuer.enqueue([message(i) for i in range(50)])
        await enqueuer.enqueue([message(i) for i in range(50)])
        assert connections_of(server) == before + 1  # the one that asks


async def test_a_replica_connects_to_the_broker_before_its_first_slot(redis_url: str, own_server: Server) -> None:
    async with enqueuer_for(own_server.url) as enqueuer, SlotQueue(redis_url, enqueuer=enqueuer):
        await eventually(lambda: counted(own_server, "connected_clients", of="clients") > 1)  # one of them asks


async def test_a_batch_is_one_pipeline_where_kombu_has_such(redis_url: str, server: Server) -> None:
    async with enqueuer_for(redis_url) as enqueuer:
        await enqueuer.enqueue([message()])
        before = counted(server, "total_reads_processed")
        assert set(await enqueuer.enqueue([message(i) for i in range(200)])) == {Accepted()}
        reads = counted(server, "total_reads_processed") - before
    assert reads < 60 if kombu.VERSION >= (5, 7) else reads > 200


def connections_of(server: Server) -> int:
    return counted(server, "total_connections_received")


def counted(server: Server, name: str, *, of: str = "stats") -> int:
    line = next(line for line in server.ask(f"INFO {of}").splitlines() if line.startswith(f"{name}:"))
    return int(line.partition(":")[2])


@pytest.mark.parametrize(
    "options,problem",
    [
        ({"eta": 3}, "sent when it is due"),
        ({"ignore_result": True}, "task's own setting"),
        ({"prio": 1}, "there is no such option"),
        ({"expires": FIRE}, "an instant would be over"),
        ({"expires": 0}, "neither a timedelta nor seconds"),
        ({"headers": {"slotqueue": "x"}}, "slotqueue's own"),
        ({"priority": "high"}, "no whole number"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused_when_the_job_is_added(
    options: dict[str, Any], problem: str
) -> None:
    slots = SlotQueue("redis://localhost:1/0", enqueuer=CeleryEnqueuer(app_for("memory://")))
    with pytest.raises(ConfigurationError, match=problem) as caught:
        slots.add("digest", Every(minutes=5), on_crash="skip", options=options)
    assert caught.value.job == "digest"
    assert caught.value.argument == f"options[{next(iter(options))!r}]"
    assert slots.jobs == {}


@pytest.mark.parametrize("serializer,value", [("json", object()), ("yaml-that-is-not-there", 1)])
def test_arguments_that_do_not_serialise_are_named(serializer: str, value: object) -> None:
    slots = SlotQueue(
        "redis://localhost:1/0", enqueuer=CeleryEnqueuer(app_for("memory://", task_serializer=serializer))
    )
    with pytest.raises(ConfigurationError) as caught:
        slots.add("digest", Every(minutes=5), on_crash="skip", kwargs={"when": value})
    assert (caught.value.job, caught.value.argument) == ("digest", "kwargs['when']")


async def test_the_queue_of_the_job_wins_over_routes(redis_url: str) -> None:
    async with enqueuer_for(redis_url, task_routes={"send_digest": {"queue": "routed"}}) as enqueuer:
        await enqueuer.enqueue([message(1), message(2, queue=None)])
    assert [json.loads(each.headers["slotqueue"])[0] for each in taken(redis_url)] == [message(1).slip.key]
    assert [json.loads(each.headers["slotqueue"])[0] for each in taken(redis_url, "routed")] == [message(2).slip.key]


def test_a_retention_shorter_than_the_visibility_timeout_is_refused() -> None:
    short: dict[str, Any] = {"on_crash": "skip", "retention": timedelta(minutes=30)}
    patient = app_for("redis://localhost:1/0", broker_transport_options={"visibility_timeout": 600})
    SlotQueue("redis://localhost:1/0", enqueuer=CeleryEnqueuer(patient)).add("digest", Every(minutes=5), **short)
    slots = SlotQueue("redis://localhost:1/0", enqueuer=CeleryEnqueuer(app_for("redis://localhost:1/0")))
    with pytest.raises(ConfigurationError, match="visibility timeout") as caught:
        slots.add("digest", Every(minutes=5), **short)
    assert caught.value.argument == "retention"


def test_the_example_of_the_documents_is_sound() -> None:
    text = (Path(__file__).parents[2] / "docs" / "celery.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    assert len(code.splitlines()) <= 20
    names: dict[str, Any] = {}
    exec(compile(code, "docs/celery.md", "exec"), names)
    assert sorted(names["slots"].jobs) == ["digest", "nightly_rollup"]
    guard = guard_app(names["app"], namespace="ran", open_guard=lambda _: pytest.fail("not opened"))
    guard.guard_tasks()
    assert {job.task for job in names["slots"].jobs.values()} <= set(guard.guarded)
    names["app"].close()
