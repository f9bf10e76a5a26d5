"""The functions behind the verbs, asked directly: frozen values, no printing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest

from slotqueue import ConfigurationError, Cron, Every, InvalidSlotKey, Job, SlotQueue, SlotState
from slotqueue.messages import Accepted, Delivery, Message, Waiting
from slotqueue.ops import Severity, Site, account, check, check_jobs, recent, upcoming
from slotqueue.protocols import Process
from tests.store.stage import Stage


class Fake:
    """An enqueuer without a queue."""

    kind = "arq"

    def check(self, job: Job) -> None:
        pass

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        return [Accepted()] * len(messages)

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        pass


@pytest.fixture
def app(redis_url: str) -> SlotQueue:
    app = SlotQueue(redis_url, enqueuer=Fake())
    app.add("rollup", Cron("0 3 * * *", tz="Europe/Berlin"), task="do_rollup", on_crash="complete")
    return app


@pytest.fixture
async def site(app: SlotQueue) -> AsyncIterator[Site]:
    site = Site.of(app)
    yield site
    await site.close()


async def test_a_site_of_an_application_knows_its_schedules(site: Site) -> None:
    found = await account(site, "ran:rollup:2026-10-02T03:00")
    assert not found.is_on_record
    assert found.says.startswith("It is not a slot of this schedule (cron 0 3 * * * Europe/Berlin)")
    assert "2026-10-02T01:00:00Z and 2026-10-03T01:00:00Z" in found.says


async def test_an_application_is_asked_over_its_own_connection(app: SlotQueue, stage: Stage) -> None:
    slip = stage.claimed()
    assert app.ops is app.ops
    assert (await app.ops.account(slip.key)).state is SlotState.CLAIMED
    assert (await app.ops.recent(job="rollup")).rows[0].key == slip.key
    assert (await app.ops.check()).jobs[0].name == "rollup"
    await app.close()


async def test_answers_are_frozen(site: Site, stage: Stage) -> None:
    stage.redis.hset("ran:jobs", "rollup", "v1:1:1:1")
    slip = stage.claimed()
    (row,) = (await recent(site)).rows
    assert (row.key, row.state) == (slip.key, SlotState.CLAIMED)
    with pytest.raises(FrozenInstanceError):
        row.note = "changed"  # type: ignore[misc]
    assert (await recent(site, state=SlotState.CLAIMED)).rows == (row,)
    assert (await recent(site, state={SlotState.DONE, SlotState.DEAD})).rows == ()


async def test_a_list_says_when_older_slots_were_left_out(site: Site, stage: Stage) -> None:
    stage.redis.hset("ran:jobs", "rollup", "v1:1:1:1")
    for _ in range(3):
        stage.claimed()
    assert (await recent(site, limit=3)).is_complete
    assert not (await recent(site, limit=2)).is_complete


async def test_a_guarded_task_is_known_with_when_its_worker_was_seen(site: Site, stage: Stage) -> None:
    stage.run(stage.verbs.enlist(Process("w1", tasks=("arq:do_rollup",))))
    checked = await check(site, now=datetime(2026, 10, 2, tzinfo=UTC))
    (job,) = checked.jobs
    assert (job.is_guarded, job.task) == (True, "arq:do_rollup")
    assert job.worker_seen is not None
    assert job.next_fires[0] == datetime(2026, 10, 2, 1, 0, tzinfo=UTC)
    assert checked.is_sound


def test_without_redis_nothing_is_said_of_workers(app: SlotQueue) -> None:
    checked = check_jobs(app)
    assert [job.is_guarded for job in checked.jobs] == [None]
    assert (checked.findings, checked.asked_redis) == ((), False)


def test_a_schedule_that_ends_gives_what_is_left_and_a_warning(app: SlotQueue) -> None:
    class Once:
        def between(self, start: datetime, end: datetime) -> list[datetime]:
            return [at for at in (self.at,) if start <= at < end]

        def next_after(self, instant: datetime) -> datetime | None:
            return self.at if self.at > instant else None

        def latest_at(self, instant: datetime) -> datetime | None:
            return self.at if self.at <= instant else None

        at = datetime(2026, 10, 2, 3, 0, tzinfo=UTC)
        tz = 5  # anybody's attribute may be called so

    job = app.add("once", Once(), on_crash="skip")
    (fire,) = upcoming({job.name: job.schedule}, after=datetime(2026, 10, 1, tzinfo=UTC), count=5, namespace="ran")
    assert (fire.key, fire.zone) == ("ran:once:2026-10-02T03:00", "UTC")
    checked = check_jobs(app, now=datetime(2027, 1, 1, tzinfo=UTC))
    (finding,) = checked.findings
    assert (finding.severity, finding.about) == (Severity.WARNING, "job 'once'")
    assert finding.text.endswith("never fires again")


def test_a_schedule_that_does_not_advance_is_refused(app: SlotQueue) -> None:
    class Stuck(Every):
        is_stuck = False

        def next_after(self, t: datetime) -> datetime | None:
            return t if Stuck.is_stuck else super().next_after(t)

    job = app.add("stuck", Stuck(minutes=1), on_crash="skip")
    Stuck.is_stuck = True
    with pytest.raises(ConfigurationError, match="which is not after"):
        upcoming({job.name: job.schedule}, after=datetime(2026, 10, 1, tzinfo=UTC), count=5, namespace="ran")


async def test_wrong_questions_are_refused_before_redis_is_asked() -> None:
    site = Site.at("redis://127.0.0.1:1/0", "ran")
    with pytest.raises(InvalidSlotKey):
        await account(site, "nothing")
    with pytest.raises(ConfigurationError, match="is of the namespace 'mine', and this is 'ran'"):
        await account(site, "mine:rollup:2026-10-02T03:00")
    with pytest.raises(ConfigurationError, match="limit"):
        await recent(site, limit=0)
    await site.close()
