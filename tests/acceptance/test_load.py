"""Many jobs, many replicas, and jobs that misbehave: each slot goes out once, and none stands in another's way."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from slotqueue import ConfigurationError, Every, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer
from slotqueue.events import EnqueueRefused, PassFailed
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Waiting
from slotqueue.slots import from_ms, key_at
from tests.fleet.fixtures import Apps, NewFleet
from tests.fleet.fleet import Fleet
from tests.hours import hourly
from tests.servers import Server
from tests.waiting import eventually


@pytest.mark.alone
async def test_a_list_longer_than_the_grace_is_worked_through_once(new_fleet: NewFleet) -> None:
    """Case 12, rq/rq-scheduler#312: the lock expires while the scheduler still works through its list.

    400 jobs at one instant, 10 ms for each enqueue, 3 replicas, a grace shorter than the whole takes; then once more.
    """
    names = [f"job-{i}" for i in range(400)]
    jobs = [{"name": name, "every": 6} for name in names]
    fleet = new_fleet(jobs=jobs, enqueue_ms=10, grace_ms=3000)
    worker = fleet.worker(jobs=[], worker={"max_jobs": 100, "keep_result": 0})
    await fleet.are_ready(worker)
    await fleet.replicas(3)
    first = math.ceil((fleet.now() + 0.5) / 6) * 6
    keys = {key_at("ran", name, from_ms(at * 1000)) for name in names for at in (first, first + 6)}
    await fleet.passes(first + 6)
    await eventually(lambda: keys <= _keys(fleet, "SlotEnqueued", "ConfirmStale").keys(), within=60, pause=0.5)
    await eventually(lambda: not any(fleet.redis.zmscore("arq:queue", list(keys))), within=60, pause=0.5)

    claimed = _keys(fleet, "SlotClaimed")
    assert {claimed[key] for key in keys} == {1}, "each is won once"
    assert not fleet.events("EnqueueRefused", "PassFailed")
    assert Counter(fleet.runs(key) for key in keys) == {1: 800}


def _keys(fleet: Fleet, *events: str) -> Counter[str]:
    return Counter(event["key"] for event in fleet.events(*events))


async def test_ticks_with_nothing_due_ask_once_a_second_at_most_whether_stored_jobs_have_changed(
    apps: Apps, new_fleet: NewFleet, own_server: Server
) -> None:
    """Case 14, coleifer/huey#850: the same task sent several times in a minute, and a SET for each at every tick."""
    fleet = new_fleet(own_server.url)
    app = apps.new(own_server.url)
    for i in range(100):
        app.add(f"job-{i}", hourly(), task="quick")
    app.add("mail", Every(seconds=1), task="quick")
    await app.tick()
    before, after = await _idle_second(fleet, app)
    asked = {name.removeprefix("cmdstat_") for name, calls in after.items() if calls != before.get(name)}
    assert asked <= {"evalsha", "get", "hget", "hlen"}
    assert after["cmdstat_evalsha"] - before["cmdstat_evalsha"] <= 1


async def _idle_second(fleet: Fleet, app: SlotQueue) -> tuple[dict[str, int], dict[str, int]]:
    """The calls before and after more than ten passes within a second, behind its slot and before the next one."""
    while True:
        await fleet.next_second()
        await app.tick()
        second, before = int(fleet.now()), _calls(fleet)
        counts = [await app.tick() for _ in range(11)]
        after = _calls(fleet)
        if int(fleet.now()) == second:
            assert not any(counts), "no slot is due"
            return before, after


def _calls(fleet: Fleet) -> dict[str, int]:
    """How often clients have called each command; the test itself asks for the time and for this."""
    stats = fleet.redis.info("commandstats")
    own = {"cmdstat_info", "cmdstat_time"}
    return {name: each["calls"] for name, each in stats.items() if name not in own}


@pytest.mark.alone
async def test_winners_and_losers_add_up(new_fleet: NewFleet) -> None:
    """Case 18, rails/solid_queue#636: the loser reported an enqueue as well. 3 replicas, 100 slots."""
    names = [f"job-{i}" for i in range(25)]
    jobs = [{"name": name, "every": 1, "lookback": 30} for name in names]
    fleet = new_fleet(jobs=jobs)
    await fleet.are_ready(fleet.worker(jobs=[]))
    await fleet.replicas(3)
    first = math.ceil(fleet.now() + 0.3)
    keys = {key_at("ran", name, from_ms((first + i) * 1000)) for name in names for i in range(4)}

    def told(name: str) -> list[str]:
        return [event["key"] for event in fleet.events(name) if event["key"] in keys]

    await eventually(lambda: len(told("SlotClaimed")) + len(told("SlotTaken")) >= 300)
    await eventually(lambda: len(told("SlotEnqueued")) + len(told("ConfirmStale")) >= 100)
    assert sorted(told("SlotClaimed")) == sorted(keys)
    assert len(told("SlotTaken")) == 200
    assert sorted(told("SlotEnqueued") + told("ConfirmStale")) == sorted(keys)
    assert not fleet.events("EnqueueRefused", "PassFailed", "StoreLost", "SlotBroken")


class Odd:
    """An enqueuer that does as it likes with some jobs."""

    kind = "arq"

    def __init__(self, answers: Any) -> None:
        self._answers = answers
        self.sent: list[str] = []

    def check(self, job: Job) -> None:
        pass

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        self.sent += [message.slip.key for message in messages]
        answers: Sequence[Delivery] = self._answers(messages)
        return answers

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("answer", [None, False, True, "ok"])
async def test_an_answer_that_says_nothing_is_no_acceptance(answer: Any, apps: Apps, new_fleet: NewFleet) -> None:
    """Case 18, rails/solid_queue#251: an adapter's false return crashed the loop."""
    fleet = new_fleet()
    app = apps.new(
        enqueuer=Odd(lambda messages: [answer if "odd" in each.slip.key else Accepted() for each in messages])
    )
    for name in ("odd", "mail"):
        app.add(name, Every(seconds=1))
    counts = await app.tick()
    await fleet.next_second()
    counts += await app.tick()
    odd, mail = fleet.keys("odd"), fleet.keys("mail")
    assert counts["won"] == len(odd) + len(mail) > 1
    assert counts["refused"] == len(odd)
    assert [event.key for event in apps.told(EnqueueRefused)] == odd
    assert set(fleet.states("mail")) == {"sent"}
    assert set(fleet.states("odd")) == {"claimed"}
    assert fleet.redis.zscore("ran:open", odd[0]) < (fleet.now() + 1.1) * 1000, "it is tried again soon"


@pytest.mark.parametrize("answers", [None, [], [Accepted()], 7], ids=repr)
async def test_an_enqueuer_that_answers_nonsense_fails_its_slots_alone(
    answers: Any, apps: Apps, new_fleet: NewFleet
) -> None:
    fleet = new_fleet()
    app = apps.new()
    odd = Odd(lambda _: answers)
    odd.kind = "odd"
    for name in ("odd-1", "odd-2"):
        app.add(name, Every(seconds=1), enqueuer=odd)
    app.add("mail", Every(seconds=1))
    counts = await app.tick()
    await fleet.next_second()
    counts += await app.tick()
    assert counts["refused"] == len(fleet.keys("odd-1")) + len(fleet.keys("odd-2")) > 1
    assert counts["sent"] == len(fleet.keys("mail")) > 0


async def test_a_chunk_whose_turn_comes_too_late_is_left_to_the_sweep(
    apps: Apps, new_fleet: NewFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a queue that hangs, or in a replica that was frozen: others may have taken the slots over by then."""
    fleet = new_fleet()

    def slowly(messages: Sequence[Message]) -> list[Delivery]:
        monkeypatch.setattr("slotqueue.outbox.ENQUEUE_SECONDS", 0.0)
        return [Accepted()] * len(messages)

    queue = Odd(slowly)
    before, app = apps.new(enqueuer=queue), apps.new(enqueuer=queue)
    daily = Every(days=1, offset=(int(fleet.now()) - 60) % 86_400)
    for i in range(30):  # more than a first chunk
        for each in (before, app):
            each.add(f"job-{i}", daily)
    await before.tick()
    for name, text in fleet.redis.hgetall("ran:jobs").items():
        if name:  # it is known for an hour: one slot is due, at one instant with those of the others
            version, since, *rest = text.split(":")
            fleet.redis.hset("ran:jobs", name, ":".join((version, str(int(since) - 3_600_000), *rest)))
    counts = await app.tick()
    assert counts["won"] == 30
    assert 0 < counts["sent"] == len(queue.sent) < 30
    assert counts["refused"] == 30 - counts["sent"]
    late = apps.told(EnqueueRefused)
    assert {event.problem for event in late} == {"its turn came too late: the queue is slow"}
    for event in late:
        fleet.let_deadline_pass(event.key)
    assert (await app.sweep())["sent"] == len(late)


@pytest.mark.alone
async def test_jobs_that_misbehave_hold_up_no_other(apps: Apps, new_fleet: NewFleet) -> None:
    """Case 19, procrastinate-org/procrastinate#1158, #1464: one failing deferral stopped the others.

    100 jobs at one instant: the arguments of #37 stop serialising, the queue of #50 has no worker, #60 brings 5 MB.
    """
    fleet = new_fleet()
    await fleet.are_ready(fleet.worker(worker={"max_jobs": 50}))
    broken: dict[str, Any] = {}
    odd: dict[int, dict[str, Any]] = {
        37: {"kwargs": {"rows": broken}},
        50: {"queue": "nobody:reads:this"},
        60: {"kwargs": {"text": "x" * 5_000_000}},
    }
    app = apps.new()
    for i in range(100):
        app.add(f"job-{i}", Every(seconds=10), task="quick", **odd.get(i, {}))
    broken["row"] = lambda: "does not pickle"
    await app.start()
    await eventually(lambda: all(fleet.keys(f"job-{i}") for i in range(100)))
    first = {i: fleet.keys(f"job-{i}")[0] for i in range(100)}
    for i in set(range(100)) - {37, 50}:
        record = await fleet.reaches(first[i], "done")
        assert int(record["claimed"]) - int(record["fire"]) < 1000, "on time"
        assert fleet.runs(first[i]) == 1
    assert fleet.state(first[50]) == "queued"
    assert fleet.state(first[37]) == "claimed"
    assert "do not serialise" in fleet.record(first[37])["error"]
    assert first[37] in {event.key for event in apps.told(EnqueueRefused)}
    assert {event.job for event in apps.told(EnqueueRefused)} == {"job-37"}
    assert not apps.told(PassFailed)
    assert app.is_ready


def test_arguments_that_do_not_serialise_are_refused_when_the_job_is_added(apps: Apps) -> None:
    """Case 19, celery/celery#3005: a datetime among JSON arguments."""

    def dump(entries: dict[str, Any]) -> bytes:
        return json.dumps(entries).encode()

    app = apps.new(enqueuer=ArqEnqueuer(job_serializer=dump, job_deserializer=json.loads))
    with pytest.raises(ConfigurationError, match=r"job 'digest', kwargs\['when'\]: .*serial"):
        app.add("digest", Every(minutes=1), kwargs={"when": datetime(2026, 10, 2, tzinfo=UTC)})
    assert not app.jobs
