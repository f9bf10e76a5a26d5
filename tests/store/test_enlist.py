from __future__ import annotations

from slotqueue.answers import Word
from slotqueue.protocols import Process
from tests.store.stage import DAY, MINUTE, Stage


def test_a_worker_is_listed_and_its_tasks_are_guarded(stage: Stage) -> None:
    now = stage.run(stage.verbs.enlist(Process("w1", '{"pid": 3}', ("arq:a", "arq:b c"))))
    assert abs(now - stage.now()) < 5000
    assert stage.redis.hgetall("ran:workers") == {"w1": f'{now} {{"pid": 3}}'}
    assert dict(stage.redis.zrange("ran:tasks", 0, -1, withscores=True)) == {"arq:a": now, "arq:b c": now}


def test_a_worker_that_is_silent_for_a_day_is_dropped_and_its_tasks_stay_guarded(stage: Stage) -> None:
    then = stage.run(stage.verbs.enlist(Process("w1", tasks=("arq:do_rollup",))))
    stage.redis.hset("ran:workers", "w1", f"{then - DAY - MINUTE} {{}}")
    stage.redis.hset("ran:workers", "damaged", "rubbish")
    stage.run(stage.verbs.enlist(Process("w2", tasks=("arq:x",))))
    assert stage.redis.hkeys("ran:workers") == ["w2"]
    assert stage.confirm(stage.claimed()) == Word.QUEUED


def test_tasks_that_no_worker_has_known_for_ninety_days_are_dropped(stage: Stage) -> None:
    stage.redis.zadd("ran:tasks", {"old": stage.now() - 90 * DAY - MINUTE, "young": stage.now() - 89 * DAY})
    stage.run(stage.verbs.enlist(Process("w1", tasks=("new",))))
    assert stage.redis.zrange("ran:tasks", 0, -1) == ["young", "new"]


def test_a_worker_without_tasks_guards_nothing(stage: Stage) -> None:
    stage.run(stage.verbs.enlist(Process("w1")))
    assert stage.confirm(stage.claimed()) == Word.SENT


def test_whoever_leaves_on_purpose_is_no_longer_listed(stage: Stage) -> None:
    stage.run(stage.verbs.enlist(Process("w1", tasks=("arq:do_rollup",))))
    assert [stage.run(stage.verbs.leave(name)) for name in ("w1", "r1", "nobody")] == [1, 1, 0]
    assert stage.redis.hlen("ran:workers") == stage.redis.hlen("ran:replicas") == 0
    assert stage.confirm(stage.claimed()) == Word.QUEUED


def test_a_replica_vouches_for_tasks_that_redis_has_forgotten(stage: Stage) -> None:
    known = stage.now() - DAY
    stage.redis.zadd("ran:tasks", {"arq:there": known})
    now = stage.run(stage.verbs.vouch(["arq:do_rollup", "arq:there"]))
    assert dict(stage.redis.zrange("ran:tasks", 0, -1, withscores=True)) == {"arq:there": known, "arq:do_rollup": now}
    assert stage.redis.ttl("ran:tasks") > 0
    assert stage.confirm(stage.claimed()) == Word.QUEUED
