"""A stage for tests of the store: the real server, a replica, a worker, and ways to move time without waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import redis

from slotqueue.answers import Dropped, Known, Offer, Run, Takeover, Verdict, Word
from slotqueue.jobs import Job
from slotqueue.messages import Refused, Slip
from slotqueue.policy import Policy
from slotqueue.protocols import ANY_FENCE, Command, Process
from slotqueue.slots import EPOCH, Slot, SlotState, from_ms, key_at, parse_key, to_ms
from slotqueue.store import BlockingStore
from slotqueue.store.keys import Keys

T = TypeVar("T")

NAMESPACE = "ran"
EPOCH_VALUE = "the-first-epoch"
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
GRACE = 10_000
TIMES_OF_A_RECORD = ("claimed", "queued", "began", "waits", "ended", "fire", "start")
KEYS_WITHOUT_A_TTL = {
    f"{NAMESPACE}:{word}" for word in ("pauses", "pausers", "epoch", "jobs", "decided", "stored", "changes")
}

AGE = """
local ms, decided = tonumber(ARGV[1]), ARGV[2]
local function earlier(key, field)
  local value = tonumber(redis.call('HGET', key, field) or '')
  if value then redis.call('HSET', key, field, string.format('%.0f', value - ms)) end
end
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'zset' then
    local found = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #found, 2 do redis.call('ZADD', key, tonumber(found[i + 1]) - ms, found[i]) end
  elseif key == decided then
    for _, job in ipairs(redis.call('HKEYS', key)) do earlier(key, job) end
  elseif kind == 'hash' and string.find(key, ':record$') then
    for i = 3, #ARGV do earlier(key, ARGV[i]) end
  end
  local life = redis.call('PTTL', key)
  if life > ms then redis.call('PEXPIRE', key, life - ms) elseif life > 0 then redis.call('DEL', key) end
end
"""


class Stage:
    """One namespace on a real server; its replica is "r1" and its worker "w1" unless a test says otherwise."""

    def __init__(self, url: str) -> None:
        self.redis: Any = redis.Redis.from_url(url, decode_responses=True)
        self.store = BlockingStore(url, NAMESPACE)
        self.verbs = self.store.verbs
        self.keys = Keys(NAMESPACE)
        self._age = self.redis.register_script(AGE)
        self._newest = to_ms(datetime.now(UTC)) // 1000
        self._slots = 0
        self._tokens = 0
        self.run(self.verbs.register(Process("r1"), [], epoch=EPOCH_VALUE, is_last=True))

    def close(self) -> None:
        self.store.close()
        self.redis.close()

    def run(self, command: Command[T]) -> T:
        began = time.monotonic()
        answer = self.store.run(command)
        self._ran_at = (began + time.monotonic()) / 2
        return answer

    def since_run_ms(self) -> float:
        """How long ago the newest command was, so that a slow machine makes no life or wait shorter."""
        return (time.monotonic() - self._ran_at) * 1000

    # ---- what is there

    def now(self) -> int:
        seconds, micros = self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def record(self, key: str) -> dict[str, str]:
        found: dict[str, str] = self.redis.hgetall(f"{key}:record")
        return found

    def state(self, key: str) -> str | None:
        return self.record(key).get("state")

    def deadline(self, key: str) -> int | None:
        score = self.redis.zscore(f"{NAMESPACE}:open", key)
        return None if score is None else int(score)

    def wait_of(self, key: str) -> int:
        """How long from the newest command the deadline is, rounded to seconds, in ms."""
        deadline = self.deadline(key)
        assert deadline is not None, f"{key} is not open"
        return round((deadline - self.now() + self.since_run_ms()) / 1000) * 1000

    def life_of(self, key: str) -> int:
        """The key's TTL at the newest command, rounded to seconds, in ms; below zero where it has none."""
        left = int(self.redis.pttl(key))
        return left if left < 0 else round((left + self.since_run_ms()) / 1000) * 1000

    def past(self, key: str) -> list[str]:
        record = self.record(key)
        found = sorted((int(name[5:]), text) for name, text in record.items() if name.startswith("past."))
        return [text.split(" ", 1)[1] for _, text in found]

    def snapshot(self) -> dict[str, object]:
        """Every key with its value: what "changes nothing" is measured by. The times to live are not in it."""
        read: dict[str, Any] = {
            "string": self.redis.get,
            "hash": self.redis.hgetall,
            "list": lambda key: self.redis.lrange(key, 0, -1),
            "zset": lambda key: self.redis.zrange(key, 0, -1, withscores=True),
            "set": self.redis.smembers,
        }
        return {key: read[str(self.redis.type(key))](key) for key in self.all_keys()}

    def all_keys(self) -> list[str]:
        return sorted(self.redis.keys("*"))

    def immortal_keys(self) -> set[str]:
        return {key for key in self.all_keys() if self.redis.pttl(key) == -1}

    # ---- moving time

    def pass_deadline(self, key: str) -> None:
        """Let the deadline of an open slot have passed a moment ago."""
        assert self.deadline(key) is not None, f"{key} is not open"
        self.redis.zadd(f"{NAMESPACE}:open", {key: self.now() - 1})

    def pass_instant(self, ms: int) -> None:
        """Wait until Redis's clock is beyond `ms`: a millisecond or two, where `ms` is a fence."""
        end = time.monotonic() + 5
        while self.now() <= ms:
            assert time.monotonic() < end, f"{ms} is far in the future"

    def age(self, ms: int) -> None:
        """Let `ms` pass for everything in Redis: times, deadlines and lives. Fences keep their values."""
        self._age(keys=self.all_keys(), args=[ms, f"{NAMESPACE}:decided", *TIMES_OF_A_RECORD])

    # ---- jobs and slots

    def job(self, name: str = "rollup", *, period: timedelta = timedelta(hours=1), **policy: object) -> Job:
        said: dict[str, Any] = {"on_crash": "complete", **policy}
        return Job(
            name=name,
            schedule=f"every {period}",
            task=f"do_{name}",
            enqueuer="arq",
            policy=Policy(**said),
            period=period,
        )

    def slot(self, job: Job, ago: float | None = None) -> Slot:
        """A slot of a job that was due `ago` seconds ago; each call without `ago` gives another one."""
        if ago is None:
            self._slots += 1
            ago = self._slots
        fire = EPOCH + timedelta(seconds=self._newest - ago)
        return Slot(key_at(NAMESPACE, job.name, fire), job.name, fire, fire - job.period)

    def slip(self, job: Job, slot: Slot, n: int = 0) -> Slip:
        return Slip(slot.key, n, to_ms(slot.fire_time), to_ms(slot.start), job.task_name, job.version, job.terms.text)

    # ---- steps of the protocol

    def claim(self, *offers: Offer, replica: str = "r1", epoch: str = EPOCH_VALUE, ahead_ms: int = 0) -> list[Verdict]:
        return self.run(self.verbs.claim(offers, replica=replica, epoch=epoch, ahead_ms=ahead_ms)).verdicts

    def guard(self, job: Job) -> None:
        self.run(self.verbs.enlist(Process("w1", tasks=(job.task_name,))))

    def claimed(self, job: Job | None = None, slot: Slot | None = None) -> Slip:
        job = job or self.job()
        slot = slot or self.slot(job)
        assert self.claim(Offer(job, slot)) == [Verdict(Word.WON)]
        return self.slip(job, slot)

    def held(self, job: Job, slot: Slot | None = None) -> Slip:
        """Claim a slot while another one of the job is in its way."""
        slot = slot or self.slot(job)
        assert [verdict.word for verdict in self.claim(Offer(job, slot))] == [Word.HELD]
        return self.slip(job, slot)

    def lose(self, key: str) -> None:
        """Let Redis have lost all that it kept of a slot, but for what the sets of its job say."""
        self.redis.delete(key, f"{key}:record", f"{key}:done")
        self.redis.zrem(f"{NAMESPACE}:open", key)
        job = parse_key(key).job
        self.redis.zrem(f"{NAMESPACE}:{job}:slots", key.removeprefix(f"{NAMESPACE}:{job}:"))

    def queued(self, job: Job | None = None, slot: Slot | None = None) -> Slip:
        job = job or self.job()
        slip = self.claimed(job, slot)
        self.guard(job)
        assert self.confirm(slip) == Word.QUEUED
        return slip

    def running(self, job: Job | None = None, slot: Slot | None = None) -> Run:
        return self.began(self.queued(job, slot))

    def began(self, slip: Slip, from_fence: str | int = "") -> Run:
        answer = self.begin(slip, from_fence=from_fence)
        assert isinstance(answer, Run), answer
        return answer

    def begin(
        self, slip: Slip, *, token: str | None = None, worker: str = "w1", from_fence: str | int = ""
    ) -> Run | Dropped:
        if token is None:
            self._tokens += 1
            token = f"token-{self._tokens}"
        return self.run(self.verbs.begin(slip, token=token, worker=worker, from_fence=from_fence))

    def confirm(self, slip: Slip) -> Word:
        return self.run(self.verbs.confirm([slip]))[0].word

    def release(self, slip: Slip, problem: str = "refused", *, is_sent_possible: bool = False) -> Word:
        return self.run(self.verbs.release([(slip, Refused(problem, is_sent_possible))]))[0].word

    def heartbeat(self, run: Run) -> Word:
        return self.run(self.verbs.heartbeat([run]))[0].word

    def finish(self, run: Run) -> Word:
        return self.run(self.verbs.finish(run)).word

    def postpone(self, run: Run, delay_ms: int = 1000, why: str = "retry", *, is_message_gone: bool = False) -> Word:
        return self.run(self.verbs.postpone(run, delay_ms, why, is_message_gone=is_message_gone)).word

    def fail(self, run: Run, error: str = "ValueError: no") -> Word:
        return self.run(self.verbs.fail(run, error)).word

    def reject(self, key: str, n: int = 0, why: str = "unknown task") -> Word:
        return self.run(self.verbs.reject(key, n, why)).word

    def take_over(
        self, *keys: str, task: str = "arq:do_rollup", replica: str = "r2", contact_ms: int = DAY
    ) -> list[Takeover]:
        return self.run(self.verbs.take_over(keys, [task] * len(keys), replica=replica, contact_ms=contact_ms))

    def swept(self, key: str, *, task: str = "arq:do_rollup", replica: str = "r2", contact_ms: int = DAY) -> Takeover:
        """Let the deadline pass and take the slot over."""
        self.pass_deadline(key)
        return self.take_over(key, task=task, replica=replica, contact_ms=contact_ms)[0]

    def enqueued_again(self, key: str, *, replica: str = "r2") -> Slip:
        """Sweep the slot and return the slip of its next enqueue."""
        taken = self.swept(key, replica=replica)
        assert taken.word is Word.ENQUEUE, taken
        assert taken.slip is not None
        return taken.slip

    def pause(self, job: str = "rollup", until: int = 0) -> None:
        self.redis.hset(f"{NAMESPACE}:pauses", job, str(until))

    def known(self, job: Job, since: int = 0, decided: int = 0) -> Known:
        return Known(job.name, job.schedule_version, since, decided)

    # ---- slots in each state

    def in_state(self, state: SlotState, **policy: object) -> tuple[Slip, Run]:
        """Bring a fresh slot into a state, through the verbs.

        Returns the slip of its newest enqueue and the newest run of it, or one that never was.
        """
        said: dict[str, Any] = {"on_crash": "complete", "on_failure": "again", **policy}
        match state:
            case SlotState.DEAD:
                said["on_failure"] = "dead"
            case SlotState.LOST:
                said["on_crash"] = "skip"
        job = self.job(**said)
        if state is SlotState.SKIPPED:
            self.pause()
            slot = self.slot(job)
            assert self.claim(Offer(job, slot)) == [Verdict(Word.SKIPPED, "paused")]
            self.redis.delete(f"{NAMESPACE}:pauses")
            slip = self.slip(job, slot)
        elif state is SlotState.HELD:
            job = self.job(**said, overlap="hold")
            other = self.slot(job)
            self.claim(Offer(job, other))
            slip = self.held(job)
            self.lose(other.key)
        else:
            slip = self.claimed(job)
        run = Run(slip, 7, "nobody's", "w9", 1)
        match state:
            case SlotState.CLAIMED | SlotState.SKIPPED | SlotState.HELD:
                pass
            case SlotState.SENT:
                self.redis.delete(f"{NAMESPACE}:tasks")
                assert self.confirm(slip) == Word.SENT
            case SlotState.MISSED:
                self.redis.hset(f"{slip.key}:record", "claimed", self.now() - 2 * DAY)
                assert self.swept(slip.key).word is Word.MISSED
            case _:
                self.guard(job)
                assert self.confirm(slip) == Word.QUEUED
                if state is not SlotState.QUEUED:
                    run = self._ran(state, slip)
        assert self.state(slip.key) == state
        return slip, run

    def _ran(self, state: SlotState, slip: Slip) -> Run:
        run = self.began(slip)
        match state:
            case SlotState.POSTPONED:
                assert self.postpone(run) == Word.YES
            case SlotState.FAILED | SlotState.DEAD:
                assert self.fail(run) in {Word.FAILED, Word.DEAD}
            case SlotState.DONE:
                assert self.finish(run) == Word.YES
            case SlotState.LOST:
                assert self.swept(slip.key).word is Word.LOST
        return run


def fire_ms(slot: Slot) -> int:
    return to_ms(slot.fire_time)


def later(slot: Slot, seconds: float) -> Slot:
    """The slot of the same job, some seconds later."""
    fire = from_ms(fire_ms(slot) + seconds * 1000)
    return Slot(key_at(NAMESPACE, slot.job, fire), slot.job, fire, slot.start)


__all__ = ["ANY_FENCE", "DAY", "EPOCH_VALUE", "GRACE", "HOUR", "MINUTE", "NAMESPACE", "Stage", "fire_ms", "later"]
