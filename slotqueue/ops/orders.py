"""What an operator has done to single slots: bring one back, run one again, run a job now.

No code is needed where the record says all: the slot is put where the next sweep of any replica that knows the job
enqueues it. A state in which a verb makes no sense is an answer, not an error.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum

from slotqueue.ops.operator import operator
from slotqueue.ops.plans import known_plan_of, plan_of
from slotqueue.ops.silence import is_silent
from slotqueue.ops.site import Site, canonical
from slotqueue.slots import SlotState, from_ms, key_at, parse_key
from slotqueue.store.orders import Answer, Orders, Wanted
from slotqueue.words import instant


class OrderOutcome(StrEnum):
    """What came of an operator's wish; the first two say that it is on its way, the others that nothing was changed."""

    CLAIMED = "claimed"
    """The next sweep of a replica that knows the job enqueues it."""
    HELD = "held"
    """It waits while another slot of its job is out: `overlap="hold"`."""
    BUSY = "busy"
    """Another slot of its job is out: `overlap`."""
    PAUSED = "paused"
    """Its job is paused."""
    DONE = "done"
    """It is done already."""
    SENT = "sent"
    """It was sent to a worker that does not report: nobody knows whether it ran."""
    OPEN = "open"
    """It is open: somebody owes something for it."""
    ENDED = "ended"
    """It ended without being done: `retry` is the verb for it."""
    MISSING = "missing"
    """There is no record of it."""
    TAKEN = "taken"
    """It has been decided: there is a claim or a record."""
    EARLY = "early"
    """Its fire time has not come."""
    BROKEN = "broken"
    """Its keys in Redis are damaged."""


@dataclass(frozen=True, slots=True)
class Order:
    """What came of an operator's wish for one slot.

    Args:
        key: of the slot that is to run.
        outcome: for programs.
        says: the same in a sentence.
        by: who wished it.
    """

    key: str
    outcome: OrderOutcome
    says: str
    by: str

    @property
    def is_taken(self) -> bool:
        """Whether the slot is on its way."""
        return self.outcome in (OrderOutcome.CLAIMED, OrderOutcome.HELD)


async def retry(site: Site, key: str, *, by: str | None = None) -> Order:
    """Bring a dead, lost, missed or skipped slot back: under the same id, its attempts start anew.

    Args:
        site: where; an application is needed only where a slot has no record and its schedule is of a kind of its own.
        key: the slot key.
        by: who; default: this user on this host.

    Raises:
        InvalidSlotKey: the text is no slot key.
        ConfigurationError: it is a key of another namespace.
        StoreUnavailable: ask again; a slot that is on its way by then is `OPEN`.
    """
    key, parts, by = canonical(key), site.parts_of(key), by or operator()
    orders = Orders(site.reader.keys, by)
    (answer,) = await site.store.run(orders.retry([key]))
    if answer.word != OrderOutcome.MISSING:
        return await _told(site, key, answer, by)
    plan = await plan_of(site, parts.job)
    if plan is None or plan.schedule is None:
        says = f"{key}: there is no record of it; `slotqueue show` says why."
        if site.jobs is None:
            says += " Only its application could tell its schedule: name it as MODULE:ATTRIBUTE."
        return Order(key, OrderOutcome.MISSING, says, by)
    if parts.mark or not plan.fires_at(parts.fire_time):
        says = f"{key}: there is no record of it, and it is not a slot of the schedule ({plan.schedule_words})."
        return Order(key, OrderOutcome.MISSING, says, by)
    (answer,) = await site.store.run(orders.order([plan.wanted(key, parts.fire_time)], "retried without a record"))
    return await _told(site, key, answer, by)


async def rerun(site: Site, key: str, *, by: str | None = None) -> Order:
    """Run the work of a done (or sent) slot once more, on purpose: as a slot of its own, `<slot key>~r...`.

    It has the fire time and the interval of the first one, and the policy under which that was claimed.

    Args:
        site: where; no application is needed.
        key: the slot key.
        by: who; default: this user on this host.

    Raises:
        InvalidSlotKey: the text is no slot key.
        ConfigurationError: it is a key of another namespace.
        StoreUnavailable: its effect is not known; `slotqueue slots` shows whether the new slot is there.
    """
    key, parts, by = canonical(key), site.parts_of(key), by or operator()
    (kept,) = await site.reader.slots([key])
    record = kept.record
    if record is None and kept.damage:
        return Order(key, OrderOutcome.BROKEN, f"{key}: its keys in Redis are damaged: {kept.damage}.", by)
    if record is None:
        return Order(key, OrderOutcome.MISSING, f"{key}: there is no record of it; `slotqueue show` says why.", by)
    if record.state.is_open:
        return Order(key, OrderOutcome.OPEN, f"{key} is {record.state}: it has not ended yet.", by)
    if record.state not in (SlotState.DONE, SlotState.SENT):
        says = f"{key} is {record.state}, so there is nothing to repeat; `slotqueue retry` brings it back."
        return Order(key, OrderOutcome.ENDED, says, by)
    base = key_at(parts.namespace, parts.job, parts.fire_time)
    again = Wanted(
        f"{base}~r{secrets.token_hex(3)}",
        record.numbers.fire,
        record.numbers.start or record.numbers.fire,
        record.task,
        record.version,
        record.terms.text,
    )
    return await _order(site, again, f"rerun of {key} wanted", by)


async def trigger(site: Site, job: str, *, by: str | None = None) -> Order:
    """Run a job now, as a slot of its own that never collides with the schedule: `<slot key>~t...`.

    Its interval goes from the fire time before it up to now.

    Args:
        site: where.
        job: its name.
        by: who; default: this user on this host.

    Raises:
        ConfigurationError: a job that nobody knows.
        StoreUnavailable: its effect is not known; `slotqueue slots` shows whether the new slot is there.
    """
    by, now = by or operator(), await site.reader.now()
    at = from_ms(now // 1000 * 1000)
    key = f"{key_at(site.namespace, job, at)}~t{secrets.token_hex(3)}"
    plan = await known_plan_of(site, job)
    return await _order(site, plan.wanted(key, at), "triggered", by)


async def replicas_note(site: Site) -> str:
    """A sentence where no replica is there that could sweep; "" otherwise."""
    now = await site.reader.now()
    if not all(is_silent(replica.seen, now) for replica in await site.reader.replicas()):
        return ""
    return " No replica is up: nothing happens until one is."


async def _order(site: Site, slot: Wanted, said: str, by: str) -> Order:
    (answer,) = await site.store.run(Orders(site.reader.keys, by).order([slot], said))
    return await _told(site, slot.key, answer, by)


async def _told(site: Site, key: str, answer: Answer, by: str) -> Order:
    outcome, detail = OrderOutcome(answer.word), answer.detail
    job = parse_key(key).job
    match outcome:
        case OrderOutcome.CLAIMED:
            says = f"{key} goes out with the next sweep of a replica that knows the job.{await replicas_note(site)}"
        case OrderOutcome.HELD:
            says = f"{key} is held: {detail.removeprefix('overlap: ')}. It goes out when its turn has come."
        case OrderOutcome.BUSY:
            says = f"{key} was left alone: {detail}, and no two slots of {job!r} may be out at once."
        case OrderOutcome.PAUSED:
            says = f"{key} was left alone: {job!r} is paused; `slotqueue resume` lets it go on."
        case OrderOutcome.DONE:
            says = f"{key} is done; `slotqueue rerun` repeats it, as a slot of its own."
        case OrderOutcome.SENT:
            says = (
                f"{key} was handed to the queue, and nobody reports whether it ran; `slotqueue rerun` repeats it, as a "
                "slot of its own."
            )
        case OrderOutcome.OPEN:
            says = f"{key} is {detail}: it has not ended yet."
        case OrderOutcome.TAKEN:
            says = f"{key} is {detail or 'claimed, and its record is gone'}: it has been decided."
        case OrderOutcome.EARLY:
            says = f"{key} is not due yet: {instant(parse_key(key).fire_time)}."
        case _:
            says = f"{key}: its keys in Redis are damaged: {detail}."
    return Order(key, outcome, says, by)
