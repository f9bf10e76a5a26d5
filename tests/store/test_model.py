"""The real scripts against the model, step by step, with crashes, stale messages, lost replies, time and loss.

A step that never happens is a crash: nothing here makes a replica confirm or a worker finish. Time is moved by
rewriting what is stored. The server's clock runs on meanwhile, so a step is compared with the model at the time
before it and at the time after it, and one of the two must fit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from slotqueue.answers import Offer, Run
from slotqueue.jobs import Job
from slotqueue.messages import Refused, Slip
from slotqueue.protocols import Command, Process
from slotqueue.slots import EPOCH, Slot, key_at
from slotqueue.store.orders import Orders
from tests.servers import Server
from tests.store.model import BACK, DAY, MINUTE, OPEN, OUT, Message, Model, copy_of
from tests.store.stage import EPOCH_VALUE, KEYS_WITHOUT_A_TTL, NAMESPACE, Stage

T = TypeVar("T")

TOLERANCE = 1500
MOST_SLOTS = 6
STEPS = [3_000, 11_000, 61_000, 6 * MINUTE, 65 * MINUTE]

twice = [False, False, False, True]
back = [0, 0, 0, 1, 2, 3]
"""Which of the slots, messages or runs there were, counted from the newest: older ones are stale."""
rarely = [False, False, False, True]


@dataclass
class Ghost:
    """What really happened to a slot, whatever the store remembers: what the invariants are about."""

    fence: int = 0
    is_finished: bool = False
    has_begun_uncleanly: bool = False
    lease: Run | None = None
    """The newest run that has not ended."""
    lease_until: int = 0
    was_offered: bool = False


class Protocol(RuleBasedStateMachine):
    """One namespace: one job with a policy of its own, a few slots, any number of messages and runs."""

    stage: Stage

    @initialize(
        on_crash=st.sampled_from(["complete", "skip"]),
        on_failure=st.sampled_from(["dead", "again"]),
        max_attempts=st.integers(1, 3),
        requeue=st.sampled_from([None, 60, 300]),
        expires=st.sampled_from([None, 3600]),
        is_guarded=st.sampled_from([True, True, False]),
        overlap=st.sampled_from(["allow", "allow", "forbid", "hold", "hold"]),
        max_held=st.integers(1, 3),
    )
    def start(
        self,
        on_crash: str,
        on_failure: str,
        max_attempts: int,
        requeue: int | None,
        expires: int | None,
        is_guarded: bool,
        overlap: str,
        max_held: int,
    ) -> None:
        self.stage.redis.flushall()
        self.stage.run(self.stage.verbs.register(Process("r1"), [], epoch=EPOCH_VALUE, is_last=True))
        self.model = Model()
        self.job: Job = self.stage.job(
            on_crash=on_crash,
            on_failure=on_failure,
            max_attempts=max_attempts,
            requeue_after=requeue,
            expires=expires,
            overlap=overlap,
            max_held=max_held,
        )
        self.may_be_two = False
        self.most_waiting = 1 if overlap == "allow" else 3
        self.newest = self.stage.now() // 1000 * 1000
        self.fires: list[int] = []
        self.slots: list[Slot] = []
        self.ghosts: list[Ghost] = []
        self.slips: list[tuple[int, int]] = []
        self.runs: list[Run] = []
        self.tokens = 0
        if is_guarded:
            self.a_guarded_worker_comes()
        for _ in range(self.most_waiting):
            self.a_slot_is_due()

    @rule(seed=st.integers(0, 2**32 - 1))
    def step(self, seed: int) -> None:
        """One action out of those that can do something now, most often one that moves a slot on.

        Hypothesis likes the first of many choices best; the seed decides evenly.
        """
        self.random = Random(seed)
        actions = [self.some_claim, self.some_take_over, self.time_passes, self.the_world_changes]
        if any(slot.deadline is not None for slot in self.model.slots.values()):
            actions += [self.a_deadline_passes, self.some_take_over, self.some_take_over]
        if any(slot.deadline is not None and slot.deadline <= self.stage.now() for slot in self.model.slots.values()):
            actions += [self.some_take_over] * 3
        if self.slips:
            actions += [self.confirm, self.release, self.reject]
            if any(self.is_newest(i, n, {"claimed"}) for i, n in self.slips):
                actions += [self.confirm, self.confirm, self.release]
            actions += [self.begin] * 4
        if not self.job.terms.may_overlap:
            actions += [self.some_claim] * 4
        if self.runs:
            actions += [self.heartbeat, self.finish, self.postpone, self.postpone, self.fail, self.fail]
        if self.retryable():
            actions.append(self.retry)
        self.draw(actions)()

    def draw(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def some_slot(self) -> int:
        return len(self.slots) - 1 - self.draw(back) % len(self.slots)

    def a_slot_is_due(self) -> None:
        fire_time = EPOCH + timedelta(milliseconds=self.newest - 1000 * (len(self.slots) + 1))
        key = key_at(NAMESPACE, "rollup", fire_time)
        self.slots.append(Slot(key, "rollup", fire_time, fire_time - self.job.period))
        self.fires.append(self.stage.now() - 1000)
        self.ghosts.append(Ghost())

    # ---- replicas

    def some_claim(self) -> None:
        waiting = [i for i, ghost in enumerate(self.ghosts) if not ghost.was_offered]
        if len(self.slots) < MOST_SLOTS and len(waiting) < self.most_waiting and self.draw(rarely):
            self.a_slot_is_due()
        self.claim(self.draw([*waiting, self.some_slot()]), self.draw(["r1", "r2"]))

    def claim(self, i: int, replica: str) -> None:
        ghost, fire = self.ghosts[i], self.fires[i]
        if self.stage.now() > fire + self.job.terms.retention - MINUTE:
            return  # beyond lookback: nobody offers it
        if ghost.was_offered and self.job.terms.on_crash == "s" and self.model.slot(self.slots[i].key).record is None:
            return  # after a loss, slots of skip jobs are not offered again
        ghost.was_offered = True
        start = EPOCH + timedelta(milliseconds=fire - self.job.period // timedelta(milliseconds=1))
        slot = replace(self.slots[i], fire_time=EPOCH + timedelta(milliseconds=fire), start=start)
        command = self.stage.verbs.claim([Offer(self.job, slot)], replica=replica, epoch=EPOCH_VALUE)
        message = self.message(i, 0)
        word = self.both(
            command,
            lambda answer: answer.verdicts[0].word,
            lambda model, now: model.claim(now, message, replica),
        )
        if word in {"won", "held"}:  # nobody is sent the slip of a held one: its begin must be refused
            self.slips.append((i, 0))

    def confirm(self) -> None:
        i, n = self.some_slip("claimed")
        slip = self.slip(i, n)
        self.both(
            self.stage.verbs.confirm([slip]),
            lambda answer: answer[0].word,
            lambda model, now: model.confirm(now, slip.key, n),
        )

    def release(self) -> None:
        is_sent_possible = self.draw([False, True])
        i, n = self.some_slip("claimed", "queued")
        slip = self.slip(i, n)
        self.both(
            self.stage.verbs.release([(slip, Refused("no", is_sent_possible))]),
            lambda answer: answer[0].word,
            lambda model, now: model.release(now, slip.key, n, is_sent_possible),
        )

    def some_take_over(self) -> None:
        contact = self.draw([DAY, DAY, DAY, 10_000, 0])
        is_known = self.draw([True, True, True, False])
        if not self.draw(rarely):
            self.a_deadline_passes()
        overdue = [i for i, slot in enumerate(self.slots) if self.is_overdue(slot.key)]
        is_wrong = self.draw(rarely) or not overdue
        self.take_over(self.some_slot() if is_wrong else self.draw(overdue), contact, is_known)

    def take_over(self, i: int, contact: int, is_known: bool) -> None:
        key = self.slots[i].key
        task = self.job.task_name if is_known else ""
        word = self.both(
            self.stage.verbs.take_over([key], [task], replica="r2", contact_ms=contact),
            lambda answer: answer[0].word,
            lambda model, now: model.take_over(now, key, is_known=is_known, contact=contact),
        )
        if word == "enqueue":
            record = self.model.slot(key).record
            assert record is not None
            self.slips.append((i, record.n))

    def reject(self) -> None:
        i, n = self.some_slip("claimed", "queued", "postponed")
        key = self.slots[i].key
        word = self.both(
            self.stage.verbs.reject(key, n, "unknown task"),
            lambda answer: answer.word,
            lambda model, now: model.reject(now, key, n),
        )
        if word == "failed":
            self.ghosts[i].has_begun_uncleanly = False

    # ---- an operator

    def retryable(self) -> list[int]:
        return [i for i in range(len(self.slots)) if self.is_in(i, BACK)]

    def retry(self) -> None:
        i = self.some_slot() if self.draw(rarely) else self.draw(self.retryable())
        key = self.slots[i].key
        word = self.both(
            Orders(self.stage.keys, "alice@web-1").retry([key]),
            lambda answer: answer[0].word,
            lambda model, now: model.retry(now, key),
        )
        if word in {"claimed", "held"}:
            self.handed_back(i)

    # ---- workers

    def begin(self) -> None:
        how = self.draw(["", "any", "any", "run", "run"])
        i, n = self.some_slip(*OPEN)
        ghost, slip, message = self.ghosts[i], self.slip(i, n), self.message(i, n)
        from_fence: str | int = how
        if how == "run":
            mine = [run.fence for run in self.runs if run.slip.key == slip.key]
            from_fence = mine[-1 - self.draw(back) % len(mine)] if mine else ""
        self.tokens += 1
        token = f"t{self.tokens}"
        answers: list[Run] = []
        stood = self.model.slot(slip.key).record

        def read(answer: Any) -> str:
            if isinstance(answer, Run):
                answers.append(answer)
                return "run"
            return str(answer.why)

        self.both(
            self.stage.verbs.begin(slip, token=token, worker="w1", from_fence=from_fence),
            read,
            lambda model, now: model.begin(now, message, token, from_fence),
        )
        if not answers:
            return
        self.may_be_two |= stood is None or stood.state == "sent"
        run = answers[0]
        assert {answer.fence for answer in answers} == {run.fence}
        assert not ghost.is_finished, "it began after the done marker"
        assert run.fence > ghost.fence, "the fence did not grow"
        is_own_retry = from_fence == ghost.fence
        assert is_own_retry or ghost.lease is None or ghost.lease_until <= self.stage.now(), "two leases at once"
        if self.job.terms.on_crash == "s":
            assert is_own_retry or not ghost.has_begun_uncleanly, "a skip slot began twice"
        ghost.fence, ghost.has_begun_uncleanly = run.fence, True
        ghost.lease, ghost.lease_until = run, self.stage.now() + run.terms.lease - TOLERANCE
        self.runs.append(run)

    def heartbeat(self) -> None:
        i, run, message = self.some_run()
        self.may_be_two |= self.model.slot(run.slip.key).record is None
        word = self.both(
            self.stage.verbs.heartbeat([run]),
            lambda answer: answer[0].word,
            lambda model, now: model.heartbeat(now, message, run.fence, run.token),
        )
        if word == "yes" and self.ghosts[i].fence == run.fence:
            self.ghosts[i].lease = run
            self.ghosts[i].lease_until = self.stage.now() + run.terms.lease - TOLERANCE

    def finish(self) -> None:
        i, run, message = self.some_run()
        word = self.both(
            self.stage.verbs.finish(run),
            lambda answer: answer.word,
            lambda model, now: model.finish(now, message, run.fence),
        )
        if word == "yes":
            self.ghosts[i].is_finished = True
            self.ghosts[i].lease = None

    def postpone(self) -> None:
        delay, is_message_gone = self.draw([0, MINUTE, 3 * DAY]), self.draw([False, True])
        i, run, _ = self.some_run()
        word = self.both(
            self.stage.verbs.postpone(run, delay, "retry", is_message_gone=is_message_gone),
            lambda answer: answer.word,
            lambda model, now: model.postpone(now, run.slip.key, run.fence, delay, is_message_gone),
        )
        if word == "yes":
            self.handed_back(i)

    def fail(self) -> None:
        i, run, _ = self.some_run()
        word = self.both(
            self.stage.verbs.fail(run, "ValueError"),
            lambda answer: answer.word,
            lambda model, now: model.fail(now, run.slip.key, run.fence),
        )
        if word in {"failed", "dead"}:
            self.handed_back(i)

    # ---- the world

    def the_world_changes(self) -> None:
        changes = [self.a_guarded_worker_comes, self.an_operator_pauses_or_resumes, self.a_record_is_lost]
        if self.draw(rarely):
            changes += [self.everything_is_lost, self.a_day_passes]
        if not self.job.terms.may_overlap:
            changes += [self.the_sets_of_the_job_are_lost]
        self.draw(changes)()

    def a_day_passes(self) -> None:
        self.shift(25 * 60 * MINUTE)

    def time_passes(self) -> None:
        self.shift(self.draw(STEPS))

    def a_deadline_passes(self) -> None:
        deadlines = [slot.deadline for slot in self.model.slots.values() if slot.deadline is not None]
        if deadlines:
            deadline = self.draw(sorted(deadlines))
            self.shift(max(deadline - self.stage.now() + TOLERANCE, 0))

    def shift(self, ms: int) -> None:
        note(f"{ms / 1000} s pass")
        self.stage.age(ms)
        self.model.shift(ms)
        self.fires = [fire - ms for fire in self.fires]
        for ghost in self.ghosts:
            ghost.lease_until -= ms
        if any(fire < self.stage.now() - 20 * DAY for fire in self.fires):
            self.forget()

    def a_guarded_worker_comes(self) -> None:
        self.stage.guard(self.job)
        self.model.is_guarded = True

    def an_operator_pauses_or_resumes(self) -> None:
        is_paused = not self.model.is_paused and self.draw(rarely)
        if is_paused:
            self.stage.pause()
        else:
            self.stage.redis.delete(f"{NAMESPACE}:pauses")
        self.model.is_paused = is_paused

    def a_record_is_lost(self) -> None:
        i = self.some_slot()
        slot = self.model.slot(self.slots[i].key)
        self.stage.redis.delete(f"{slot.key}:record")
        if slot.record is not None:
            slot.record = None
            self.lost(i)

    def the_sets_of_the_job_are_lost(self) -> None:
        """They are hints: nothing that the store does may change."""
        self.stage.redis.delete(f"{NAMESPACE}:rollup:out", f"{NAMESPACE}:rollup:held")

    def everything_is_lost(self) -> None:
        self.stage.redis.flushall()
        self.stage.redis.set(f"{NAMESPACE}:epoch", EPOCH_VALUE)
        self.model.lose_everything()
        for i in range(len(self.slots)):
            self.lost(i)
            self.ghosts[i].is_finished = False  # the done marker is gone as well

    # ---- what must hold after each step

    @invariant()
    def the_store_holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "model"):
            return
        self.model.expire(self.stage.now())
        deadlines = dict(self.stage.redis.zrange(f"{NAMESPACE}:open", 0, -1, withscores=True))
        expected = {slot.key: slot.deadline for slot in self.model.slots.values() if slot.deadline is not None}
        assert deadlines.keys() == expected.keys()
        for key, deadline in deadlines.items():
            assert abs(deadline - (expected[key] or 0)) <= self.tolerance, f"deadline of {key}"
        for slot in self.slots:
            self.check_slot(slot.key, deadlines)
        terms = self.job.terms
        assert terms.may_overlap or self.may_be_two or self.model.count(*OUT) <= 1, "two slots are out at once"
        assert self.model.count("held") <= (terms.max_held or 0)
        for key in self.stage.immortal_keys():
            assert key in KEYS_WITHOUT_A_TTL, f"{key} lives for ever"

    tolerance = TOLERANCE
    """The model knows the time of a step as well as the longest of them lets it, ms."""

    def check_slot(self, key: str, deadlines: dict[str, float]) -> None:
        redis, slot = self.stage.redis, self.model.slot(key)
        with redis.pipeline() as pipe:
            pipe.hgetall(f"{key}:record").pttl(f"{key}:record")
            pipe.exists(key).pttl(key)
            pipe.exists(f"{key}:done").pttl(f"{key}:done").time()
            found, life, has_claim, claim_life, has_done, done_life, (seconds, micros) = pipe.execute()
        now = seconds * 1000 + micros // 1000
        record = slot.record
        assert (not found) is (record is None), f"record of {key}: {found}, {record}"
        assert bool(has_claim) is (slot.owner is not None), f"claim of {key}"
        assert bool(has_done) is bool(slot.done_until), f"done marker of {key}"
        if has_claim:
            assert abs(now + claim_life - slot.owner_until) <= self.tolerance, f"life of the claim of {key}"
        if has_done:
            assert abs(now + done_life - slot.done_until) <= self.tolerance, f"life of the done marker of {key}"
        if record is None:
            return
        numbers = (found["state"], int(found["n"]), int(found.get("fence", 0)), int(found.get("spent", 0)))
        assert numbers == (record.state, record.n, record.fence, record.spent)
        assert found.get("token", "") == record.token
        assert abs(now + life - record.until) <= self.tolerance, f"life of the record of {key}"
        assert record.spent <= record.terms.max_attempts
        assert (record.state in OPEN) is (key in deadlines), f"{key} is {record.state}"
        if record.state in OPEN:
            assert now + life >= deadlines[key] + record.terms.retention - self.tolerance

    # ---- how a step is taken

    def both(
        self,
        command: Command[T],
        read: Callable[[T], str],
        step: Callable[[Model, int], str],
    ) -> str:
        """Take a step in the store and in the model; now and then its reply is lost, and it is asked again."""
        first = self.once(command, read, step)
        if self.draw(twice):
            self.once(command, read, step)
        return first

    def once(self, command: Command[T], read: Callable[[T], str], step: Callable[[Model, int], str]) -> str:
        before = self.stage.now()
        found = str(read(self.stage.run(command)))
        after = self.stage.now()
        self.tolerance = max(self.tolerance, TOLERANCE + after - before)
        note(f"{command.script} {[str(arg)[:40] for arg in command.args]}: {found}")
        expected = []
        for now in (before, after):
            model = copy_of(self.model)
            model.expire(now)
            expected.append(step(model, now))
            if expected[-1] == found:
                self.adopt_fences(model, before, after)
                self.model = model
                return found
        raise AssertionError(f"the store answered {found}, the model {expected}: {command.script} {command.args}")

    def adopt_fences(self, model: Model, before: int, after: int) -> None:
        """A fence is the time of its begin, which lies between the two times that were asked."""
        for slot in model.slots.values():
            if slot.record and before <= slot.record.fence <= after:
                found = int(self.stage.redis.hget(f"{slot.key}:record", "fence") or 0)
                assert before <= found <= after + 50
                slot.record.fence = found

    # ---- small things

    def slip(self, i: int, n: int) -> Slip:
        return replace(self.stage.slip(self.job, self.slots[i], n), fire=self.fires[i])

    def message(self, i: int, n: int) -> Message:
        return Message(self.slots[i].key, n, self.fires[i], self.job.terms)

    def is_overdue(self, key: str) -> bool:
        deadline = self.model.slot(key).deadline
        return deadline is not None and deadline <= self.stage.now()

    def some_slip(self, *states: str) -> tuple[int, int]:
        """Any message, but more often of a slot in one of these states: the newest, or one it has overtaken."""
        due = [(i, n) for i, n in self.slips if self.is_in(i, states)]
        fresh = [(i, n) for i, n in due if self.is_newest(i, n, states)]
        stale = [slip for slip in due if slip not in fresh]
        if fresh and not self.draw(rarely):
            return self.draw(fresh)
        if stale and not self.draw(rarely):
            return self.draw(stale)
        return self.slips[-1 - self.draw(back) % len(self.slips)]

    def is_in(self, i: int, states: Collection[str]) -> bool:
        record = self.model.slot(self.slots[i].key).record
        return record is not None and record.state in states

    def is_newest(self, i: int, n: int, states: Collection[str]) -> bool:
        record = self.model.slot(self.slots[i].key).record
        return record is not None and record.n == n and self.is_in(i, states)

    def some_run(self) -> tuple[int, Run, Message]:
        """A run with what its message says now: time moves on by moving the past."""
        leased = [ghost.lease for ghost in self.ghosts if ghost.lease is not None]
        if leased and not self.draw(rarely):
            run = self.draw(leased)
        else:
            run = self.runs[-1 - self.draw(back) % len(self.runs)]
        i = [slot.key for slot in self.slots].index(run.slip.key)
        return i, replace(run, slip=replace(run.slip, fire=self.fires[i])), self.message(i, run.slip.n)

    def handed_back(self, i: int) -> None:
        self.ghosts[i].has_begun_uncleanly = False
        self.ghosts[i].lease = None

    def lost(self, i: int) -> None:
        """Nobody can know of a lease that Redis has lost until its worker beats again."""
        self.stage.pass_instant(self.ghosts[i].fence)
        self.ghosts[i].lease = None
        self.ghosts[i].has_begun_uncleanly = self.ghosts[i].has_begun_uncleanly and self.job.terms.on_crash == "s"

    def forget(self) -> None:
        """Messages and runs do not live for weeks."""
        self.slips.clear()
        self.runs.clear()


@contextmanager
def _machine(url: str) -> Iterator[type[Protocol]]:
    stage = Stage(url)
    yield type("Protocol", (Protocol,), {"stage": stage})
    stage.close()


def _explore(server: Server, examples: int, steps: int) -> None:
    with _machine(server.url) as machine:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=int(os.environ.get("SLOTQUEUE_MODEL_EXAMPLES", examples)),
                stateful_step_count=steps,
                deadline=None,
                phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.timeout(300)  # a failure takes its time to become a short story
def test_the_scripts_do_what_the_tables_say(server: Server) -> None:
    _explore(server, examples=100, steps=40)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_scripts_do_what_the_tables_say_in_long_histories(server: Server) -> None:
    _explore(server, examples=120, steps=80)
