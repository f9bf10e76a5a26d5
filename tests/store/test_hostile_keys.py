"""Every key of a namespace damaged in turn, or written by a version to come, and every verb asked about it.

Each verb answers, or says that this Redis cannot be used; none raises what nobody expects, none loops. Where the
damage is one slot's or one job's, the slots of other jobs go their way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slotqueue.answers import Gap, Offer, StoredEntry
from slotqueue.errors import StoreUnavailable
from slotqueue.messages import Refused, Slip
from slotqueue.ops.site import Site
from slotqueue.protocols import Process
from slotqueue.slots import SlotState
from slotqueue.store import AsyncStore
from slotqueue.store.checks import Health, check_redis
from slotqueue.store.commands import Commands
from slotqueue.store.keys import WORDS
from slotqueue.store.orders import Orders, Wanted
from tests.store.registering import hourly_job, register
from tests.store.stage import DAY, EPOCH_VALUE, NAMESPACE, Stage

NEWER = '{"v": 9, "what": "nobody knows yet"}'
OF_A_SLOT = ("{key}", "{key}:done", "{key}:record")
OF_A_JOB = (
    f"{NAMESPACE}:rollup:slots",
    f"{NAMESPACE}:rollup:out",
    f"{NAMESPACE}:rollup:held",
    f"{NAMESPACE}:rollup:missed",
)
OF_ALL = tuple(f"{NAMESPACE}:{word}" for word in WORDS)


class Scene:
    """A namespace in which there is something under every key, and the verbs with what they are asked about."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.verbs = stage, stage.verbs
        self.job = stage.job(overlap="hold")
        self.run = stage.running(self.job)
        self.held = stage.held(self.job)
        self.dead, _ = stage.in_state(SlotState.DEAD)
        self.fresh = stage.slot(self.job)
        self.key = self.run.slip.key
        self.orders = Orders(stage.keys, "alice@here")
        newest = stage.now()
        gap = Gap(self.job, newest, newest + 1000, "older than the lookback", slots=1)
        register(stage, hourly_job(), decided=1000)
        stage.redis.hset(f"{NAMESPACE}:past", "rollup", "v0:1:2")
        stage.run(self.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE))
        stage.run(self.verbs.letters(0, 10))
        stage.run(self.verbs.own("shop"))
        stage.run(self.verbs.put("stored", NEWER, "v1", expected=None))
        stage.run(self.orders.pause(["other"], 0, "why not"))
        self.calls: dict[str, Callable[[], Any]] = {
            "register": lambda: self.verbs.register(Process("r2"), [stage.known(self.job)], epoch="e", is_last=True),
            "enlist": lambda: self.verbs.enlist(Process("w2", tasks=("arq:do_rollup",))),
            "vouch": lambda: self.verbs.vouch(["arq:do_rollup"]),
            "leave": lambda: self.verbs.leave("r2"),
            "own": lambda: self.verbs.own("shop"),
            "claim": lambda: self.verbs.claim([Offer(self.job, self.fresh)], replica="r1", epoch=EPOCH_VALUE),
            "taken": lambda: self.verbs.taken([self.key, self.fresh.key]),
            "miss": lambda: self.verbs.miss([gap], replica="r1", epoch=EPOCH_VALUE),
            "letters": lambda: self.verbs.letters(0, 10),
            "told": lambda: self.verbs.told([self.key]),
            "confirm": lambda: self.verbs.confirm([self.run.slip]),
            "release": lambda: self.verbs.release([(self.run.slip, Refused("no"))]),
            "overdue": lambda: self.verbs.overdue(10),
            "take_over": lambda: self.verbs.take_over(
                [self.key, self.held.key], ["arq:do_rollup"] * 2, replica="r2", contact_ms=DAY
            ),
            "open_keys": lambda: self.verbs.open_keys(0, 10),
            "waiting": lambda: self.verbs.waiting([self.key]),
            "heartbeat": lambda: self.verbs.heartbeat([self.run]),
            "postpone": lambda: self.verbs.postpone(self.run, 0, "later"),
            "begin": lambda: self.verbs.begin(self.run.slip, token="t", worker="w1", from_fence="any"),
            "fail": lambda: self.verbs.fail(self.run, "no"),
            "reject": lambda: self.verbs.reject(self.key, 0, "no"),
            "finish": lambda: self.verbs.finish(self.run),
            "put": lambda: self.verbs.put("stored", NEWER, "v2", expected=None),
            "changes": lambda: self.verbs.changes(0, epoch=EPOCH_VALUE, limit=10),
            "restore": lambda: self.verbs.restore([StoredEntry("stored", 7, 0, NEWER)]),
            "remove": lambda: self.verbs.remove("stored", expected=None),
            "retry": lambda: self.orders.retry([self.key, self.dead.key]),
            "order": lambda: self.orders.order([wanted(self.run.slip)], "triggered"),
            "discard": lambda: self.orders.discard([self.dead.key]),
            "abandon": lambda: self.orders.abandon([self.held.key]),
            "pause": lambda: self.orders.pause(["rollup"], 0, "why"),
            "pauses": self.orders.pauses,
            "forget": lambda: self.orders.forget("other"),
        }


def wanted(slip: Slip) -> Wanted:
    return Wanted(f"{slip.key}~t1", slip.fire, slip.start, slip.task, slip.version, slip.terms)


def of_another_type(redis: Any, key: str) -> None:
    is_text = redis.type(key) in {"string", "none"}
    redis.delete(key)
    _ = redis.rpush(key, "a", "b") if is_text else redis.set(key, "text")


def of_a_version_to_come(redis: Any, key: str) -> None:
    match redis.type(key):
        case "hash":
            redis.hset(key, mapping=dict.fromkeys([*redis.hkeys(key), "colour"], NEWER))
        case "zset":
            redis.zadd(key, {NEWER: 1e300, "": -1e300})
        case "list":
            redis.rpush(key, NEWER)
        case _:
            redis.set(key, NEWER)


@pytest.fixture
def scene(stage: Stage) -> Scene:
    return Scene(stage)


def test_there_is_something_under_every_key_of_the_type_that_is_said(scene: Scene) -> None:
    assert {word: scene.stage.redis.type(f"{NAMESPACE}:{word}") for word in WORDS} == WORDS
    assert scene.stage.redis.exists(*(name.format(key=scene.dead.key) for name in OF_A_SLOT if "done" not in name)) == 2
    assert scene.stage.redis.exists(*OF_A_JOB) == len(OF_A_JOB)


def test_every_verb_is_asked(scene: Scene) -> None:
    verbs = {name for kind in (Commands, Orders) for name in vars(kind) if not name.startswith("_")}
    assert scene.calls.keys() == verbs - {"keys", "by"}


@pytest.mark.parametrize("damage", [of_another_type, of_a_version_to_come])
@pytest.mark.parametrize("name", [*OF_A_SLOT, *OF_A_JOB, *OF_ALL])
async def test_every_verb_and_every_reader_bears_it(
    name: str, damage: Callable[[Any, str], None], scene: Scene, redis_url: str
) -> None:
    stage = scene.stage
    damage(stage.redis, name.format(key=scene.key))
    unusable: dict[str, str] = {}
    for verb, call in scene.calls.items():
        try:
            stage.run(call())
        except StoreUnavailable as error:
            unusable[verb] = str(error)
    assert [said for said in unusable.values() if not said.startswith("Redis at redis://")] == []
    if name not in OF_ALL:
        assert unusable == {}
        assert stage.finish(stage.running(stage.job("sound"))) == "yes"
    for said in await _everything_is_read(redis_url, scene):
        assert f"a key of the namespace '{NAMESPACE}' is of another type" in said
    if name in OF_ALL and damage is of_another_type:
        health = await _checked(redis_url)
        assert [each.what for each in health.findings if f"the key {name} is a " in each.what]


async def _checked(url: str) -> Health:
    store = AsyncStore(url, NAMESPACE)
    try:
        return await check_redis(store)
    finally:
        await store.close()


async def _everything_is_read(url: str, scene: Scene) -> list[str]:
    """Ask all that a reader asks; returns what was said of questions that have no answer."""
    store, refused = AsyncStore(url, NAMESPACE), list[str]()
    reader = Site(store, NAMESPACE).reader
    questions = [
        lambda: reader.slots([scene.key, scene.dead.key]),
        lambda: reader.states([scene.key]),
        lambda: reader.newest(["rollup"], 5),
        lambda: reader.open_keys(5),
        lambda: reader.dead_keys(5),
        lambda: reader.job("rollup"),
        reader.jobs,
        reader.job_names,
        reader.jobs_with_gaps,
        reader.stored,
        lambda: reader.gaps(["rollup"]),
        reader.owner,
        reader.tasks,
        reader.replicas,
        reader.workers,
    ]
    try:
        for question in questions:
            try:
                await question()
            except StoreUnavailable as error:
                refused.append(str(error))
        return refused
    finally:
        await store.close()
