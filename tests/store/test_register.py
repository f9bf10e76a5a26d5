"""Time passes here by rewriting what the registry has seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slotqueue.answers import Known, Registered, Share
from slotqueue.protocols import Process
from tests.store.stage import DAY, EPOCH_VALUE, HOUR, MINUTE, Stage


class Fleet:
    """Replicas that register, and a clock of theirs that a test moves on."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def register(self, *jobs: Known, replica: str = "r1", epoch: str = EPOCH_VALUE) -> Registered:
        return self.stage.run(self.stage.verbs.register(Process(replica), jobs, epoch=epoch, is_last=True))

    def since(self, job: Known, replica: str = "r1") -> int:
        """Register one job and answer how long it has been known, rounded to minutes, in ms."""
        answer = self.register(job, replica=replica)
        return round((answer.now - answer.jobs[0].since) / MINUTE) * MINUTE

    def wait(self, ms: int) -> None:
        """Let `ms` pass while no replica registers: the last sign of the fleet, and each since, lie further back."""
        for job, text in self.stage.redis.hgetall("ran:jobs").items():
            entries = []
            for entry in text.split():
                parts = entry.split(":")
                for at in [0] if job == "" else [1, 2]:
                    parts[at] = str(int(parts[at]) - ms)
                entries.append(":".join(parts))
            self.stage.redis.hset("ran:jobs", job, " ".join(entries))
        for job, text in self.stage.redis.hgetall("ran:past").items():
            past = [entry.split(":") for entry in text.split()]
            entries = [f"{version}:{int(since) - ms}:{int(until) - ms}" for version, since, until in past]
            self.stage.redis.hset("ran:past", job, " ".join(entries))

    def wait_while_up(self, ms: int, *jobs: Known, replica: str = "r1") -> None:
        """Let `ms` pass while a replica with these jobs registers every few minutes."""
        for _ in range(ms // (5 * MINUTE)):
            self.wait(5 * MINUTE)
            self.register(*jobs, replica=replica)


@pytest.fixture
def fleet(stage: Stage) -> Fleet:
    return Fleet(stage)


JOB = Known("rollup", "v1")
CHANGED = Known("rollup", "v2")
OTHER = Known("other", "v1")


def test_each_replica_learns_its_share_among_those_that_were_heard_of_lately(stage: Stage, fleet: Fleet) -> None:
    assert fleet.register(replica="r1").share == Share(0, 1)
    assert fleet.register(replica="r2").share == Share(1, 2)
    assert fleet.register(replica="r0").share == Share(0, 3)
    assert fleet.register(replica="r2").share == Share(2, 3)
    seen, _, about = stage.redis.hget("ran:replicas", "r1").partition(" ")
    stage.redis.hset("ran:replicas", "r1", f"{int(seen) - 26_000} {about}")
    assert fleet.register(replica="r2").share == Share(1, 2)
    part = stage.verbs.register(Process("r2"), [], epoch=EPOCH_VALUE, is_last=False)
    assert stage.run(part).share is None


def test_the_first_replica_makes_the_epoch_and_later_ones_learn_it(stage: Stage, fleet: Fleet) -> None:
    stage.redis.flushall()
    assert fleet.register(epoch="a").epoch == "a"
    assert fleet.register(epoch="b").epoch == "a"


def test_a_flushed_redis_has_another_epoch(stage: Stage, fleet: Fleet) -> None:
    stage.redis.flushall()
    assert fleet.register(JOB, epoch="b").epoch == "b"


def test_a_new_job_owes_nothing_from_before(fleet: Fleet) -> None:
    answer = fleet.register(JOB)
    assert answer.jobs == [replace(JOB, since=answer.now, decided=0)]


def test_a_job_keeps_its_since_while_it_is_registered_again_and_again(fleet: Fleet) -> None:
    fleet.register(JOB)
    fleet.wait_while_up(HOUR, JOB)
    assert fleet.since(JOB) == HOUR


def test_a_job_keeps_its_since_through_a_downtime_of_the_whole_fleet(fleet: Fleet) -> None:
    fleet.register(JOB)
    fleet.wait(3 * DAY)
    assert fleet.since(JOB) == 3 * DAY


def test_every_job_of_a_fleet_that_was_down_keeps_its_since_whichever_registers_first(fleet: Fleet) -> None:
    fleet.register(JOB, OTHER)
    fleet.wait(3 * DAY)
    assert fleet.since(OTHER) == 3 * DAY
    assert fleet.since(JOB) == 3 * DAY


def test_after_a_downtime_each_version_of_a_rolling_deploy_keeps_its_since(fleet: Fleet) -> None:
    fleet.register(JOB)
    fleet.register(CHANGED)
    fleet.wait(3 * DAY)
    assert fleet.since(CHANGED) == 3 * DAY
    assert fleet.since(JOB) == 3 * DAY


def test_a_changed_schedule_owes_nothing_from_before(fleet: Fleet) -> None:
    fleet.register(JOB)
    fleet.wait_while_up(HOUR, JOB)
    assert fleet.since(CHANGED) == 0


def test_two_versions_that_flap_in_a_rolling_deploy_each_keep_their_since(fleet: Fleet) -> None:
    fleet.register(JOB, replica="old")
    fleet.wait(MINUTE)
    fleet.register(CHANGED, replica="new")
    for minute in range(1, 21):
        fleet.wait(MINUTE)
        assert fleet.since(JOB, "old") == (minute + 1) * MINUTE
        assert fleet.since(CHANGED, "new") == minute * MINUTE


def test_a_version_that_nobody_has_seen_for_a_while_is_dropped_once_another_is_there(
    stage: Stage, fleet: Fleet
) -> None:
    fleet.register(JOB)
    fleet.register(CHANGED)
    fleet.wait_while_up(HOUR, CHANGED)
    assert stage.redis.hget("ran:jobs", "rollup").startswith("v2:")
    assert " " not in stage.redis.hget("ran:jobs", "rollup")
    assert fleet.since(JOB) == 0


def test_a_roll_back_within_minutes_finds_its_since(fleet: Fleet) -> None:
    fleet.register(JOB)
    fleet.wait_while_up(30 * MINUTE, JOB)
    fleet.register(CHANGED)
    fleet.wait_while_up(10 * MINUTE, CHANGED)
    assert fleet.since(JOB) == 40 * MINUTE


def test_a_job_that_was_removed_for_weeks_while_the_fleet_was_up_owes_nothing_when_it_returns(fleet: Fleet) -> None:
    fleet.register(JOB, OTHER)
    fleet.wait_while_up(DAY, OTHER)
    assert fleet.since(JOB) == 0
    assert fleet.since(OTHER) == DAY


def test_a_removed_job_is_told_from_one_that_was_down_also_where_replicas_are_started_once_an_hour(
    fleet: Fleet,
) -> None:
    fleet.register(JOB, OTHER)
    for _ in range(3):
        fleet.wait(HOUR)
        fleet.register(OTHER)
    assert fleet.since(JOB) == 0
    assert fleet.since(OTHER) == 3 * HOUR


def test_a_job_that_was_removed_and_returns_after_a_downtime_owes_nothing(fleet: Fleet) -> None:
    fleet.register(JOB, OTHER)
    fleet.wait_while_up(HOUR, OTHER)
    fleet.wait(3 * DAY)
    assert fleet.since(OTHER) == 3 * DAY + HOUR
    assert fleet.since(JOB) == 0


def test_a_job_that_was_away_for_one_restart_keeps_its_since(fleet: Fleet) -> None:
    fleet.register(JOB, OTHER)
    fleet.wait(10 * MINUTE)
    fleet.register(OTHER)
    assert fleet.since(JOB) == 10 * MINUTE


def test_after_a_loss_of_data_a_replica_brings_what_it_knows(stage: Stage, fleet: Fleet) -> None:
    now = stage.now()
    stage.redis.flushall()
    known = replace(JOB, since=now - DAY, decided=now - HOUR)
    assert fleet.register(known, epoch="new").jobs == [known]
    assert fleet.register(JOB, replica="r2", epoch="newer").jobs == [known]


def test_of_two_replicas_that_bring_different_things_the_older_since_and_the_newer_decided_count(
    stage: Stage, fleet: Fleet
) -> None:
    now = stage.now()
    fleet.register(replace(JOB, since=now - HOUR, decided=now - 2 * MINUTE))
    merged = fleet.register(replace(JOB, since=now - DAY, decided=now - 10 * MINUTE)).jobs
    assert merged == [replace(JOB, since=now - DAY, decided=now - 2 * MINUTE)]


def test_jobs_are_answered_in_order_and_in_chunks(fleet: Fleet, stage: Stage) -> None:
    jobs = [Known(f"job {i}", "v1", since=1000 + i, decided=2000 + i) for i in range(1000)]
    before = stage.redis.hget("ran:jobs", "")
    answers = []
    for at in range(0, 1000, 300):
        chunk = jobs[at : at + 300]
        answers += stage.run(stage.verbs.register(Process("r7"), chunk, epoch="", is_last=False)).jobs
    assert answers == jobs
    assert stage.redis.hget("ran:jobs", "") == before
    assert not stage.redis.hexists("ran:replicas", "r7")
    fleet.register(replica="r7")
    assert stage.redis.hexists("ran:replicas", "r7")


def test_a_replica_is_listed_with_what_it_says_about_itself_until_it_is_silent_for_a_day(
    stage: Stage, fleet: Fleet
) -> None:
    stage.run(stage.verbs.register(Process("r2", '{"pid": 7}'), [], epoch="", is_last=True))
    seen, about = stage.redis.hget("ran:replicas", "r2").split(" ", 1)
    assert (about, abs(int(seen) - stage.now()) < 5000) == ('{"pid": 7}', True)
    stage.redis.hset("ran:replicas", "r2", f"{int(seen) - DAY - MINUTE} {about}")
    fleet.register()
    assert set(stage.redis.hkeys("ran:replicas")) == {"r1"}


def test_a_registry_entry_that_is_damaged_is_made_anew(stage: Stage, fleet: Fleet) -> None:
    stage.redis.hset("ran:jobs", "rollup", "rubbish v1:x:9 ::")
    stage.redis.hset("ran:decided", "rollup", "rubbish")
    stage.redis.hset("ran:replicas", "r3", "rubbish")
    answer = fleet.register(JOB, replace(OTHER, since=5))
    assert [known.since for known in answer.jobs] == [answer.now, 5]
    assert answer.jobs[0].decided == 0


def test_registering_again_after_a_lost_reply_answers_the_same(fleet: Fleet) -> None:
    first, second = fleet.register(JOB, OTHER), fleet.register(JOB, OTHER)
    assert (first.epoch, first.jobs) == (second.epoch, second.jobs)
