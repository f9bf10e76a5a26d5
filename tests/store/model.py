"""A model of the protocol in plain Python, written from the tables of the design and not from the scripts.

Times are ms of Redis's time. A verb gets `now` and answers as the store should; the state afterwards is what the
store should hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from slotqueue.policy import Terms

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
OPEN = {"claimed", "held", "queued", "running", "postponed", "failed"}
OUT = OPEN - {"held"}
NEXT_SWEEP = 1000
BACK = {"dead", "lost", "skipped", "missed"}
ANY = "any"


@dataclass
class Record:
    """The record of one slot."""

    state: str
    n: int
    fire: int
    waits_since: int
    terms: Terms
    fence: int = 0
    token: str = ""
    spent: int = 0
    is_unsent: bool = False
    until: int = 0
    """When the key's life ends."""


@dataclass
class Slot:
    """All keys of one slot. None or 0 where there is none."""

    key: str
    owner: str | None = None
    owner_until: int = 0
    record: Record | None = None
    done_until: int = 0
    deadline: int | None = None


@dataclass
class Message:
    """What a message says."""

    key: str
    n: int
    fire: int
    terms: Terms


@dataclass
class Model:
    """One namespace."""

    slots: dict[str, Slot] = field(default_factory=dict)
    open_until: int = 0
    """When the life of the index of open slots ends."""
    is_guarded: bool = False
    is_paused: bool = False

    def slot(self, key: str) -> Slot:
        return self.slots.setdefault(key, Slot(key))

    # ---- time and loss

    def expire(self, now: int) -> None:
        """Drop what has outlived its TTL."""
        for slot in self.slots.values():
            if slot.owner and slot.owner_until <= now:
                slot.owner = None
            if slot.record and slot.record.until <= now:
                slot.record = None
            if slot.done_until <= now:
                slot.done_until = 0
        if self.open_until <= now:
            for slot in self.slots.values():
                slot.deadline = None
        if all(slot.deadline is None for slot in self.slots.values()):
            self.open_until = 0

    def shift(self, ms: int) -> None:
        """Let `ms` pass: everything lies that much earlier."""
        self.open_until -= ms
        for slot in self.slots.values():
            slot.owner_until -= ms
            slot.done_until -= ms
            if slot.deadline is not None:
                slot.deadline -= ms
            if slot.record:
                slot.record.until -= ms
                slot.record.fire -= ms
                slot.record.waits_since -= ms

    def lose_everything(self) -> None:
        self.slots.clear()
        self.open_until = 0
        self.is_guarded = self.is_paused = False

    # ---- verbs

    def claim(self, now: int, message: Message, replica: str) -> str:
        slot = self.slot(message.key)
        if slot.owner:
            if slot.owner != replica or slot.record is None or slot.record.n:
                return "taken"
            return {"claimed": "won", "held": "held"}.get(slot.record.state, "taken")
        if slot.done_until or slot.record:
            return "taken"
        if message.fire > now:
            return "early"
        slot.owner, slot.owner_until = replica, 0
        slot.record = Record("claimed", 0, message.fire, now, message.terms)
        if self.is_paused or _is_expired(now, message.fire, message.terms):
            self._end(now, slot, slot.record, "skipped")
            return "skipped"
        self._wait(now, slot, slot.record, 10_000)
        if message.terms.may_overlap:
            slot.owner_until = slot.record.until = (
                now + HOUR + _wait_in_queue(message.terms, 0) + message.terms.retention
            )
            self.open_until = max(self.open_until, slot.record.until)
        return self._put_behind(now, slot, slot.record) or "won"

    def confirm(self, now: int, key: str, n: int) -> str:
        slot, record = self._found(key)
        if record is None or record.state != "claimed" or record.n != n:
            return "stale"
        if not self.is_guarded:
            self._end(now, slot, record, "sent")
            return "sent"
        record.state = "queued"
        record.is_unsent = False
        self._put_off(slot, record, now + _wait_in_queue(record.terms, n))
        return "queued"

    def release(self, now: int, key: str, n: int, is_sent_possible: bool) -> str:
        slot, record = self._found(key)
        if record is None or record.state not in {"claimed", "queued"} or record.n != n:
            return "stale"
        is_given_back = record.state == "queued"
        record.state, record.is_unsent = "claimed", not is_sent_possible
        self._wait(now, slot, record, 0 if is_given_back else min(1000 * 2**n, MINUTE))
        return "released"

    def begin(  # noqa: C901, PLR0911 - as long as its row in the table
        self, now: int, message: Message, token: str, from_fence: str | int
    ) -> str:
        slot = self.slot(message.key)
        record = slot.record
        if slot.done_until:
            return "done"
        if record is None:
            return self._begin_without_record(now, slot, message, token)
        if record.state == "running" and record.token == token:
            self._wait(now, slot, record, record.terms.lease)
            return "run"
        if record.state in {"dead", "lost", "skipped", "missed"}:
            return "over"
        if record.state == "done":
            return "done"
        if record.fence == 0 and (self.is_paused or _is_expired(now, record.fire, record.terms)):
            self._end(now, slot, record, "skipped")
            return "skipped"
        if record.state == "held":
            return "busy"
        if record.state == "running":
            if from_fence == record.fence:
                return self._run(now, slot, record, token)
            if slot.deadline is not None and slot.deadline > now:
                return "busy"
            return self._after_crash(now, slot, record) or self._run(now, slot, record, token)
        if record.state in {"postponed", "failed"} and from_fence not in {ANY, record.fence}:
            return "busy"
        return self._run(now, slot, record, token)

    def count(self, *states: str) -> int:
        """How many open slots stand there."""
        return len(self._standing(*states))

    def heartbeat(self, now: int, message: Message, fence: int, token: str) -> str:
        slot = self.slot(message.key)
        record = slot.record
        if record is None:
            if slot.done_until or message.fire + message.terms.retention < now:
                return "stale"
            record = self._anew(now, slot, message, "running")
            record.fence, record.token = fence, token
        if record.state != "running" or record.fence != fence:
            return "stale"
        self._wait(now, slot, record, record.terms.lease)
        return "yes"

    def finish(self, now: int, message: Message, fence: int) -> str:
        slot = self.slot(message.key)
        record = slot.record
        if record is None:
            if slot.done_until:
                return "yes"
            record = self._anew(now, slot, message, "running")
            record.fence = fence
        if record.fence != fence:
            return "stale"
        if record.state == "done":
            return "yes"
        self._end(now, slot, record, "done")
        slot.done_until = now + record.terms.retention
        return "yes"

    def postpone(self, now: int, key: str, fence: int, delay: int, is_message_gone: bool) -> str:
        slot, record = self._found(key)
        if record is None or record.state != "running" or record.fence != fence:
            return "stale"
        record.state, record.token, record.waits_since = "postponed", "", now + delay
        self._wait(now, slot, record, delay if is_message_gone else delay + 5 * MINUTE)
        return "yes"

    def fail(self, now: int, key: str, fence: int) -> str:
        slot, record = self._found(key)
        if record is None or record.state != "running" or record.fence != fence:
            return "stale"
        return self._strike(now, slot, record)

    def reject(self, now: int, key: str, n: int) -> str:
        slot, record = self._found(key)
        if record is None or record.n != n or record.state not in {"claimed", "queued", "postponed"}:
            return "stale"
        return self._strike(now, slot, record)

    def take_over(  # noqa: C901, PLR0911 - as begin
        self, now: int, key: str, *, is_known: bool, contact: int
    ) -> str:
        slot, record = self._found(key)
        if slot.deadline is None or slot.deadline > now:
            return "later"
        if record is None or record.state not in OPEN:
            slot.deadline = None
            return "gone"
        terms = record.terms
        if slot.done_until:
            self._end(now, slot, record, "done")
            return "done"
        if record.state == "running" and contact < terms.lease / 3:
            self._put_off(slot, record, now + min(-(-(terms.lease - 3 * contact) // 3), 5000))
            return "later"
        has_waited_out = now - record.waits_since >= terms.retention
        if not is_known:
            if has_waited_out:
                self._end(now, slot, record, "missed")
                return "missed"
            self._put_off(slot, record, now + min(max((now - record.waits_since) // 10, NEXT_SWEEP), 10 * MINUTE))
            return "unknown"
        if has_waited_out and record.state != "running":
            self._end(now, slot, record, "missed")
            return "missed"
        if record.fence == 0 and _is_expired(now, record.fire, terms):
            self._end(now, slot, record, "skipped")
            return "skipped"
        if record.state == "held" and self._is_in_the_way(slot, terms, record.fire):
            self._put_off(slot, record, now + NEXT_SWEEP)
            return "held"
        if record.state == "running":
            ended = self._after_crash(now, slot, record)
            if ended:
                return record.state
            record.waits_since = now
        elif record.state == "claimed" and not (terms.is_complete or record.is_unsent or self.is_guarded):
            self._end(now, slot, record, "lost")
            return "lost"
        record.n += 1
        record.state, record.token, record.is_unsent = "claimed", "", False
        self._wait(now, slot, record, 10_000)
        return "enqueue"

    def retry(self, now: int, key: str) -> str:  # noqa: PLR0911 - as begin
        """An operator brings a slot back."""
        slot, record = self._found(key)
        if slot.done_until or (record is not None and record.state == "done"):
            return "done"
        if record is None:
            return "missing"
        if record.state not in BACK:
            return "sent" if record.state == "sent" else "open"
        if self.is_paused:
            return "paused"
        terms = record.terms._replace(expires=0)
        is_blocked = not terms.may_overlap and self._is_in_the_way(slot, terms, record.fire)
        if is_blocked and self.count("held") >= (terms.max_held or 0):
            return "busy"
        record.terms, record.spent, record.n = terms, 0, record.n + 1
        record.waits_since, record.is_unsent = now, True
        slot.owner = slot.owner or "alice"
        if is_blocked:
            record.state, record.until = "held", now  # the long life of what has ended is over
            self._put_off(slot, record, now + NEXT_SWEEP)
            return "held"
        record.state = "claimed"
        self._wait(now, slot, record, 0)
        return "claimed"

    # ---- what several verbs do

    def _put_behind(self, now: int, slot: Slot, record: Record) -> str:
        """Hold or skip a slot that is about to go out; "" where nothing is in its way."""
        if record.terms.may_overlap or not self._is_in_the_way(slot, record.terms, record.fire):
            return ""
        if self.count("held") >= (record.terms.max_held or 0):
            self._end(now, slot, record, "skipped")
            return "skipped"
        record.state, record.until = "held", 0
        self._put_off(slot, record, now + NEXT_SWEEP)
        return "held"

    def _standing(self, *states: str) -> list[tuple[int, str]]:
        """Fire time and key of the open slots that stand there, the oldest first."""
        return sorted(
            (slot.record.fire, slot.key)
            for slot in self.slots.values()
            if slot.record is not None and slot.record.state in states and slot.deadline is not None
        )

    def _is_in_the_way(self, slot: Slot, terms: Terms, fire: int) -> bool:
        """Whether another slot is out, or under "hold" an older one held."""
        is_out = any(key != slot.key for _, key in self._standing(*OUT))
        held = [each for each in self._standing("held") if each[1] != slot.key] if terms.max_held else []
        return is_out or any(each < (fire, slot.key) for each in held)

    def _found(self, key: str) -> tuple[Slot, Record | None]:
        slot = self.slot(key)
        return slot, slot.record

    def _wait(self, now: int, slot: Slot, record: Record, ms: int) -> None:
        self._put_off(slot, record, now + ms)
        slot.owner_until = record.until = now + ms + record.terms.retention

    def _put_off(self, slot: Slot, record: Record, deadline: int) -> None:
        slot.deadline, until = deadline, deadline + record.terms.retention
        slot.owner_until, record.until = max(slot.owner_until, until), max(record.until, until)
        self.open_until = max(self.open_until, until)

    def _end(self, now: int, slot: Slot, record: Record, state: str) -> None:
        record.state, record.token, record.is_unsent = state, "", False
        slot.deadline = None
        life = max(record.terms.history, 90 * DAY) if state in {"dead", "lost"} else record.terms.history
        record.until = now + life
        slot.owner_until = now + record.terms.retention

    def _run(self, now: int, slot: Slot, record: Record, token: str) -> str:
        record.state, record.token, record.fence = "running", token, max(record.fence + 1, now)
        record.waits_since, record.is_unsent = now, False
        self._wait(now, slot, record, record.terms.lease)
        return "run"

    def _after_crash(self, now: int, slot: Slot, record: Record) -> str:
        """The lease passed in silence: the answer of begin where that ends the slot, else ""."""
        if not record.terms.is_complete:
            self._end(now, slot, record, "lost")
            return "lost"
        record.spent += 1
        if record.spent >= record.terms.max_attempts:
            self._end(now, slot, record, "dead")
            return "over"
        return ""

    def _strike(self, now: int, slot: Slot, record: Record) -> str:
        record.spent += 1
        terms = record.terms
        if terms.on_failure == "a" and record.spent < terms.max_attempts:
            record.state, record.token, record.waits_since = "failed", "", now
            self._wait(now, slot, record, min(5 * MINUTE * 2 ** (record.spent - 1), terms.longest_wait))
            return "failed"
        self._end(now, slot, record, "dead")
        return "dead"

    def _begin_without_record(self, now: int, slot: Slot, message: Message, token: str) -> str:
        if message.fire + message.terms.retention < now:
            return "expired"
        record = self._anew(now, slot, message, "queued")
        if message.terms.is_complete:
            return self._run(now, slot, record, token)
        self._end(now, slot, record, "lost")
        return "lost"

    def _anew(self, now: int, slot: Slot, message: Message, state: str) -> Record:
        slot.owner = slot.owner or "somebody"
        slot.record = Record(state, message.n, message.fire, now, message.terms)
        return slot.record


def _is_expired(now: int, fire: int, terms: Terms) -> bool:
    return terms.expires > 0 and now > fire + terms.expires


def _wait_in_queue(terms: Terms, n: int) -> int:
    """How long a message may lie in its queue until its slot is enqueued again."""
    return min(terms.requeue * 2**n, max(terms.longest_wait, terms.requeue)) if terms.requeue else terms.retention


def copy_of(model: Model) -> Model:
    """A copy that shares nothing that changes."""
    slots = {
        key: replace(slot, record=replace(slot.record) if slot.record else None) for key, slot in model.slots.items()
    }
    return replace(model, slots=slots)
