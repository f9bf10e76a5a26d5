"""N beats are as good as one: one message a slot, whoever is killed, frozen or cut off."""

from __future__ import annotations

import os
import random
import signal
import statistics
import threading
import time
from datetime import datetime, timedelta
from typing import Self

import pytest
import redis

from slotqueue.slots import from_ms, key_at
from tests.beat.process import Fleet, eventually, fire_time
from tests.servers import Server

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

_ROUND_TRIPS = 6


class Control:
    """What this machine makes of punctuality: wakes at each whole second, as beats do, and asks Redis as often as they.

    A beat claims, sends and confirms. Where others have the machine, this takes as long for everybody.
    """

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._late_ms: dict[int, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._redis.close()

    def late_ms(self, key: str) -> float:
        """How late it was itself at the instant of a slot."""
        return self._late_ms[int(fire_time(key).timestamp())]

    def _run(self) -> None:
        while True:
            at = int(time.time()) + 1
            if self._is_over.wait(max(0.0, at - time.time())):
                return
            for _ in range(_ROUND_TRIPS):
                self._redis.time()
            self._late_ms[at] = (time.time() - at) * 1000


def run_three_and_kill_two(fleet: Fleet, seconds: int, seed: int) -> list[str]:
    """Let three beats fire once a second, SIGKILL two of them at random moments; the keys of all slots between."""
    chance = random.Random(seed)
    beats = fleet.beats(3)
    first = int(fleet.now()) + 2  # the first second is not counted
    moments = sorted(chance.uniform(1, seconds - 5) for _ in range(2))
    victims = chance.sample(beats, 2)
    for moment, victim in zip(moments, victims, strict=True):
        time.sleep(max(0.0, first + moment - fleet.now()))
        victim.kill()
    time.sleep(max(0.0, first + seconds - fleet.now()))
    survivor = next(beat for beat in beats if beat.is_alive)
    code, took = survivor.stop()
    assert code == 0, survivor.log
    assert took < 5
    return [key_at("ran", "each second", from_ms(at * 1000)) for at in range(first, first + seconds)]


def assert_one_message_a_slot(fleet: Fleet, keys: list[str], *, deaths: int) -> None:
    sent = fleet.sent()
    assert [key for key, count in sent.items() if count > 1] == []
    # Only a slot whose beat died between claim and confirm may differ, and it is named.
    odd = [key for key in keys if fleet.record(key).get("state") != "sent"]
    assert len(odd) <= deaths
    assert {fleet.record(key)["state"] for key in odd} <= {"claimed", "lost"}
    assert [key for key in keys if sent[key] != 1 and key not in odd] == []


@pytest.mark.slow
@pytest.mark.alone
def test_two_of_three_beats_are_killed_and_no_slot_is_sent_twice_late_or_not_at_all(fleet: Fleet) -> None:
    seed = int(os.environ.get("SLOTQUEUE_TEST_SEED", random.SystemRandom().randrange(10**6)))
    print(f"SLOTQUEUE_TEST_SEED={seed}")
    with Control(fleet.url) as control:
        keys = run_three_and_kill_two(fleet, 60, seed)
    assert_one_message_a_slot(fleet, keys, deaths=2)
    late = {key: fleet.lateness_ms(key) for key in keys if fleet.record(key).get("state") == "sent"}
    told = {key: f"{ms:.0f} ms late, the control {control.late_ms(key):.0f} ms" for key, ms in late.items()}
    print("\n".join(f"{key}: {text}" for key, text in told.items()))
    assert {key: told[key] for key, ms in late.items() if ms > 100 + 5 * control.late_ms(key)} == {}
    assert statistics.median(late.values()) < 100


def test_a_slot_whose_beat_died_after_the_claim_is_sent_by_another_beat_where_it_is_to_be_completed(
    fleet: Fleet,
) -> None:
    entries = {"each second": {"task": "work", "schedule": 1}}
    fleet.beats(1, entries=entries, slotqueue_defaults={"on_crash": "complete"})
    eventually(fleet.sent, what="a first message")
    key = key_at("ran", "each second", from_ms((int(fleet.now()) - 100) * 1000))
    _claimed_by_a_dead_beat(fleet, key)
    eventually(lambda: fleet.sent()[key] == 1, within=60, what="the slot of the dead beat")
    assert fleet.record(key)["n"] == "1"


def test_a_slot_whose_beat_died_after_the_claim_is_named_lost_where_nobody_can_tell(fleet: Fleet) -> None:
    fleet.beats(1)
    eventually(fleet.sent, what="a first message")
    key = key_at("ran", "each second", from_ms((int(fleet.now()) - 100) * 1000))
    _claimed_by_a_dead_beat(fleet, key)
    eventually(lambda: fleet.record(key)["state"] == "lost", within=60, what="the verdict")
    assert fleet.sent()[key] == 0
    assert "vanished" in fleet.record(key)["why"]


def _claimed_by_a_dead_beat(fleet: Fleet, key: str) -> None:
    """Leave what a beat leaves that is killed between claim and enqueue: a record, long past its grace."""
    newest = max(fleet.sent(), key=fire_time)
    eventually(lambda: fleet.record(newest).get("state") in ("sent", "queued"), what="a confirmed slot")
    fire = int(fire_time(key).timestamp() * 1000)
    record = {
        **fleet.record(newest), "state": "claimed", "fire": str(fire), "start": str(fire - 1000)
    }  # fmt: skip
    for ended in ("queued", "ended"):
        record.pop(ended, None)
    fleet.redis.set(key, "web-1-4711-dead00", px=86_400_000)
    fleet.redis.hset(f"{key}:record", mapping=record)
    fleet.redis.zadd("ran:open", {key: fire + 10_000})


def test_a_frozen_beat_comes_back_without_an_error_and_doubles_nothing(fleet: Fleet) -> None:
    """Case 20: what a laptop's sleep does to a scheduler that holds a lock."""
    frozen, awake = fleet.beats(2)
    eventually(lambda: len(fleet.sent()) >= 2, what="the first messages")
    frozen.send(signal.SIGSTOP)
    before = len(fleet.sent())
    eventually(lambda: len(fleet.sent()) >= before + 4, what="messages by the other beat")
    frozen.send(signal.SIGCONT)
    eventually(lambda: len(fleet.sent()) >= before + 6, what="messages after the thaw")
    for beat in (frozen, awake):
        assert beat.stop()[0] == 0
        assert "Traceback" not in beat.log
    keys = sorted(fleet.sent(), key=fire_time)
    assert set(fleet.sent().values()) == {1}
    assert fire_time(keys[-1]) - fire_time(keys[0]) == timedelta(seconds=len(keys) - 1)


def test_a_beat_that_was_frozen_past_its_grace_sends_nothing_that_another_has_taken_over(fleet: Fleet) -> None:
    """Case 20: it stops between claim and send, for longer than the ten seconds that others leave it."""
    beats = fleet.beats(2, stalls=True, slotqueue_defaults={"on_crash": "complete"})
    eventually(lambda: fleet.redis.get("stalled"), what="a beat between claim and send")
    frozen = next(beat for beat in beats if beat.pid == int(fleet.redis.get("stalled")))
    frozen.send(signal.SIGSTOP)
    (key,) = (key for key in fleet.open_slots() if f"-{frozen.pid}-" in fleet.record(key)["by"])
    eventually(lambda: fleet.record(key)["n"] == "1" and fleet.sent()[key], within=40, what="a message by the other")
    fleet.redis.rpush("go", "on")
    frozen.send(signal.SIGCONT)
    frozen.wait_for(f"{key} could not be enqueued: the enqueuer did not answer within 8 s")
    back = fleet.now()
    eventually(lambda: _newest(fleet) > back, what="later slots")
    assert set(fleet.sent().values()) == {1}
    assert frozen.stop()[0] == 0
    assert "Traceback" not in frozen.log


def test_a_redis_that_goes_away_ends_no_beat_and_doubles_nothing(own_fleet: Fleet, own_server: Server) -> None:
    beats = own_fleet.beats(2)
    eventually(lambda: len(own_fleet.sent()) >= 2, what="the first messages")
    own_server.pause()
    for beat in beats:
        beat.wait_for("what is due stays due")
    own_server.resume()
    back = own_fleet.now()
    eventually(lambda: _newest(own_fleet) > back + 2, what="messages after the outage")
    assert all(beat.is_alive for beat in beats)
    assert set(own_fleet.sent().values()) == {1}


def _newest(fleet: Fleet) -> float:
    return max(fire_time(key).timestamp() for key in fleet.sent())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_beat_leaves_within_five_seconds_also_while_redis_is_away(
    own_fleet: Fleet, own_server: Server, number: int
) -> None:
    (beat,) = own_fleet.beats(1)
    own_server.pause()
    beat.wait_for("what is due stays due")
    code, took = beat.stop(number)
    assert code == 0, beat.log
    assert took < 6  # the interpreter's own end included


def test_a_beat_leaves_the_registry_and_nothing_on_disk(fleet: Fleet) -> None:
    (beat,) = fleet.beats(1)
    assert fleet.redis.hlen("ran:replicas") == 1
    code, took = beat.stop()
    assert code == 0
    assert took < 5
    assert fleet.redis.hlen("ran:replicas") == 0
    assert list(beat.folder.iterdir()) == []


def test_a_changed_schedule_does_not_fire_at_the_deploy(fleet: Fleet) -> None:
    """Case 40, with beats: a schedule that changes, and an entry that is new, owe nothing from before."""
    (old,) = fleet.beats(1, entries={"report": {"task": "work", "schedule": 1}})
    eventually(lambda: len(fleet.sent()) >= 2, what="the old schedule")
    assert old.stop()[0] == 0
    before = set(fleet.sent())
    time.sleep(2.1)  # slots of the new schedule pass while nobody knows it
    deployed = fleet.now()
    fleet.beats(1, entries={"report": {"task": "work", "schedule": 2}, "new": {"task": "work", "schedule": 2}})
    eventually(lambda: len(set(fleet.sent()) - before) >= 4, what="the new schedule")
    new = [fire_time(key) for key in set(fleet.sent()) - before]
    assert min(new) > datetime.fromtimestamp(deployed, tz=new[0].tzinfo)
    assert all(each.second % 2 == 0 for each in new)
