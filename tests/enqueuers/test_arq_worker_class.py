"""What the guard does to a `WorkerSettings` class. No worker runs here."""

from __future__ import annotations

import inspect
import json
from typing import Any, cast

import pytest
from arq.connections import ArqRedis, RedisSettings
from arq.cron import cron
from arq.worker import Worker, func, get_kwargs
from redis.asyncio import ConnectionPool

from slotqueue.enqueuers.arq import ArqEnqueuer, guard_worker
from slotqueue.enqueuers.arq.guarded import Guarded, Limits
from slotqueue.enqueuers.arq.places import place_of
from slotqueue.errors import ConfigurationError
from slotqueue.guard import AsyncGuard
from slotqueue.protocols import Process
from tests.unit.guard_stage import Script, ScriptedStore, ScriptedSyncStore
from tests.waiting import eventually

calls: list[Any] = []


async def send(ctx: Any, *args: object, **kwargs: object) -> str:
    calls.append((ctx, args, kwargs))
    return "sent"


async def other(ctx: Any) -> None: ...


class Opened:
    """Makes guards, and remembers what it made."""

    def __init__(self) -> None:
        self.script = Script()
        self.workers: list[Process] = []

    def __call__(self, worker: Process) -> AsyncGuard:
        self.workers.append(worker)
        store = ScriptedStore(self.script)
        return AsyncGuard(
            worker, store, open_heartbeat_store=lambda: ScriptedSyncStore(self.script), emit=lambda _: None
        )


def guarded_in(entry: Any) -> Guarded:
    return cast("Guarded", getattr(entry, "coroutine", entry).__slotqueue__)


def make(base: type = object, **facts: Any) -> Any:
    """A class as an application writes it."""
    return type("Settings", (base,), facts)


def seen_by_arq(settings: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", get_kwargs(settings))


def guard(settings: Any, namespace: str = "ran", opened: Opened | None = None) -> Any:
    assert guard_worker(settings, namespace=namespace, open_guard=opened or Opened()) is settings
    return settings


def test_arq_sees_the_same_functions_under_the_same_names() -> None:
    settings = make(functions=[send, func(other, name="another", timeout=7, max_tries=2)])
    guard(settings)
    functions = {each.name: each for each in map(func, seen_by_arq(settings)["functions"])}
    assert list(functions) == ["send", "another"]
    assert (functions["another"].timeout_s, functions["another"].max_tries) == (7, 2)
    assert all(inspect.iscoroutinefunction(each.coroutine) for each in functions.values())


def test_limits_are_those_that_arq_will_grant() -> None:
    settings = make(
        functions=[send, func(other, timeout=7, max_tries=2)], job_timeout=40, max_tries=3, retry_jobs=False
    )
    guard(settings)
    assert [guarded_in(each).limits for each in settings.functions] == [Limits(40, 3, False), Limits(7, 2, False)]
    assert Limits(None, 5, True).own_timeout is None
    assert Limits(300, 5, True).own_timeout == 299
    assert Limits(1, 5, True).own_timeout == 0.95


def test_inherited_functions_are_guarded_and_inherited_limits_are_not_there() -> None:
    base = make(functions=(send,), job_timeout=40)
    settings = make(base)
    guard(settings)
    assert base.functions == (send,)
    assert "functions" in seen_by_arq(settings)
    assert guarded_in(settings.functions[0]).limits == Limits(300, 5, True)  # arq ignores what is inherited


def test_guarding_again_changes_nothing_and_guards_what_was_added() -> None:
    settings = make(functions=[send])
    opened = Opened()
    guard(settings, opened=opened)
    startup = settings.on_startup
    settings.functions.append(other)
    guard(settings, opened=Opened())
    assert settings.on_startup is startup
    assert [guarded_in(each).function for each in settings.functions] == [send, other]
    assert [list(guarded_in(each).connections) for each in settings.functions] == [["ran"], ["ran"]]


def test_two_classes_share_a_function_and_not_its_guard() -> None:
    first = make(functions=[send])
    second = make(first, max_tries=2)
    guard(first)
    guard(second)
    first, second = guarded_in(first.functions[0]), guarded_in(second.functions[0])
    assert first.function is second.function is send
    assert first.connections["ran"] is not second.connections["ran"]
    assert (first.limits.max_tries, second.limits.max_tries) == (5, 2)


def test_a_class_may_serve_two_namespaces() -> None:
    settings = make(functions=[send])
    guard(guard(settings, "one"), "two")
    assert set(guarded_in(settings.functions[0]).connections) == {"one", "two"}


def test_everything_else_stays_as_it_is() -> None:
    settings = make(functions=[send], cron_jobs=[cron(other, hour=3)], queue_name="mine")
    before = settings.cron_jobs
    guard(settings)
    assert settings.cron_jobs is before
    assert settings.cron_jobs[0].coroutine is other
    assert guarded_in(settings.functions[0]).queue_name == "mine"


def test_a_function_given_as_text_is_imported_when_the_worker_starts() -> None:
    settings = make(functions=["no.such.module.send"])
    guard(settings)
    assert cast("Any", settings.functions[0]).name == "no.such.module.send"


async def test_an_import_that_fails_stops_the_worker_at_its_start() -> None:
    settings = make(functions=["no.such.module.send"])
    guard(settings)
    with pytest.raises(ImportError):
        await settings.on_startup({})


async def test_a_function_given_as_text_runs() -> None:
    settings = make(functions=["os.path.join"])
    guard(settings)
    guarded_in(settings.functions[0]).function.__dict__["function"] = send
    assert await cast("Any", settings.functions[0]).coroutine({"job_id": "x"}, 1) == "sent"


async def test_the_workers_own_hooks_are_called_within_ours() -> None:
    order: list[str] = []

    async def start(ctx: Any) -> None:
        order.append(f"start with {len(opened.workers)} guard")

    async def stop(ctx: Any) -> None:
        order.append(f"stop before {opened.script.closed} closings")

    opened = Opened()
    functions = [send, func(other, name="another")]
    settings = make(functions=functions, on_startup=start, on_shutdown=staticmethod(stop))
    guard(settings, opened=opened)
    await settings.on_startup({})
    await eventually(lambda: "enlist" in opened.script.verbs_asked())
    await settings.on_shutdown({})
    assert order == ["start with 1 guard", "stop before 0 closings"]
    assert opened.script.closed == 2
    assert opened.workers[0].tasks == ("arq:send", "arq:another")
    assert opened.script.verbs_asked()[-1] == "leave"


async def test_our_end_comes_even_if_theirs_fails() -> None:
    async def stop(ctx: Any) -> None:
        raise ValueError("no")

    opened = Opened()
    settings = make(functions=[send], on_shutdown=stop)
    guard(settings, opened=opened)
    await settings.on_startup({})
    with pytest.raises(ValueError, match="no"):
        await settings.on_shutdown({})
    assert opened.script.closed >= 1


@pytest.mark.parametrize("ctx", [{}, {"job_id": "some-id"}, {"job_id": "a:b:2026-99-99T03:00"}, None], ids=str)
async def test_a_call_that_is_no_slot_costs_nothing(ctx: Any) -> None:
    settings = make(functions=[send])
    opened = Opened()
    guard(settings, opened=opened)
    calls.clear()
    assert await settings.functions[0](ctx, 1, two=2) == "sent"
    assert calls == [(ctx, (1,), {"two": 2})]
    assert calls[0][0] is ctx
    assert opened.workers == []


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"functions": [send]}, "with its `functions`"),
        (make(), "with its `functions`"),
        (make(functions=[]), "functions is empty"),
    ],
)
def test_what_is_no_worker_is_refused(settings: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        guard_worker(settings, namespace="ran", open_guard=Opened())


def test_fact_arq_reads_a_settings_class_by_its_own_attributes_only() -> None:
    base = make(functions=(send,), max_tries=2)
    settings = make(base, queue_name="mine")

    assert seen_by_arq(settings) == {"queue_name": "mine"}


async def test_fact_arq_takes_a_guarded_class() -> None:
    settings = make(
        functions=[send, "os.path.join", func(other, name="another")],
        redis_settings=RedisSettings(),
        handle_signals=False,
    )
    guard(settings)
    assert list(Worker(**seen_by_arq(settings)).functions) == ["send", "os.path.join", "another"]


async def test_a_worker_tells_its_queue_and_its_redis_without_the_password() -> None:
    opened = Opened()
    redis = RedisSettings(host="queue.internal", port=6380, database=2, password="hunter2")
    settings = guard(make(functions=[send], queue_name="mail", redis_settings=redis), opened=opened)
    await settings.on_startup({})
    await settings.on_shutdown({})
    about = json.loads(opened.workers[0].about)
    assert (about["worker"], about["queue"], about["redis"]) == ("arq", "mail", "queue.internal:6380/2")
    assert "hunter2" not in opened.workers[0].about


def test_each_form_of_a_redis_has_a_place_without_a_password() -> None:
    pool = ArqRedis(ConnectionPool.from_url("redis://:hunter2@cache:6390/3"))
    assert place_of(pool) == "cache:6390/3"
    assert place_of(None) == "localhost:6379/0"
    assert place_of(RedisSettings(unix_socket_path="/run/r.sock", database=1)) == "/run/r.sock/1"
    enqueuer = ArqEnqueuer(pool, queue_name="mail")
    assert enqueuer.place == "cache:6390/3"
