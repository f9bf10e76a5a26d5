"""Dead letters: slots that were given up or lost; kept, listed, and brought back or discarded by an operator only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from slotqueue.errors import ConfigurationError
from slotqueue.ops.known import check_known
from slotqueue.ops.operator import operator
from slotqueue.ops.orders import Order, OrderOutcome, replicas_note
from slotqueue.ops.site import Site, job_of_key
from slotqueue.ops.slots import MOST_ROWS, SlotRow, recent
from slotqueue.slots import SlotState
from slotqueue.store.orders import Answer, Orders

_ALL = 1_000_000
_BATCH = 200


async def letters(site: Site, *, job: str | None = None, limit: int = 20) -> tuple[tuple[SlotRow, ...], int]:
    """List dead letters, the newest first, and count them.

    Args:
        site: where; no application is needed.
        job: only those of this job.
        limit: how many at most, 1 to 1000.

    Raises:
        ConfigurationError: a limit out of bounds, or a job that nobody knows and that has none.
        StoreUnavailable: ask again.
    """
    if not 1 <= limit <= MOST_ROWS:
        raise ConfigurationError(f"{limit} is not between 1 and {MOST_ROWS}", argument="limit")
    keys = await _keys(site, job)
    rows = (await recent(site, job=job, state={SlotState.DEAD, SlotState.LOST}, limit=limit)).rows if keys else ()
    return rows, len(keys)


async def retry_letters(site: Site, *, job: str | None = None, by: str | None = None) -> tuple[Order, ...]:
    """Bring all dead letters back, or those of one job: see `retry`.

    Returns:
        What came of each.

    Raises:
        ConfigurationError: a job that nobody knows and that has none.
        StoreUnavailable: some may be on their way; ask again.
    """
    by = by or operator()
    orders, note = Orders(site.reader.keys, by), await replicas_note(site)

    def told(key: str, answer: Answer) -> Order:
        outcome = OrderOutcome(answer.word)
        says = {
            OrderOutcome.CLAIMED: f"{key} goes out with the next sweep of a replica that knows the job.{note}",
            OrderOutcome.HELD: f"{key} is held: {answer.detail.removeprefix('overlap: ')}.",
        }.get(outcome, f"{key} was left alone: {outcome}{f' ({answer.detail})' if answer.detail else ''}.")
        return Order(key, outcome, says, by)

    async def some(keys: Sequence[str]) -> list[Answer]:
        return await site.store.run(orders.retry(keys))

    keys = await _keys(site, job)
    # The oldest first: of a job that lets no two slots be out, they go out in this order.
    return tuple(told(key, answer) for key, answer in await _in_batches(keys[::-1], some))


async def discard_letters(site: Site, *, job: str | None = None, by: str | None = None) -> tuple[str, ...]:
    """Take all dead letters, or those of one job, from the list. Their records stay for their history, and say so.

    Returns:
        The keys of the slots that were discarded.

    Raises:
        ConfigurationError: a job that nobody knows and that has none.
        StoreUnavailable: some may be discarded; ask again.
    """
    orders = Orders(site.reader.keys, by or operator())

    async def some(keys: Sequence[str]) -> list[Answer]:
        return await site.store.run(orders.discard(keys))

    done = await _in_batches(await _keys(site, job), some)
    return tuple(key for key, answer in done if answer.word != OrderOutcome.MISSING)


async def _keys(site: Site, job: str | None) -> list[str]:
    keys = [key for key in await site.reader.dead_keys(_ALL) if job_of_key(key)]
    if job is None:
        return keys
    mine = [key for key in keys if job_of_key(key) == job]
    if not mine:
        await check_known(site, job)
    return mine


async def _in_batches(
    keys: Sequence[str], some: Callable[[Sequence[str]], Awaitable[list[Answer]]]
) -> list[tuple[str, Answer]]:
    answers: list[Answer] = []
    for at in range(0, len(keys), _BATCH):
        answers += await some(keys[at : at + _BATCH])
    return list(zip(keys, answers, strict=True))
