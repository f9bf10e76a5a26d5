"""The verbs of the store, with an eye on what is answered: a book is kept, and a replica dies after a confirm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from slotqueue.answers import Claims, Gap, Offer, Verdict
from slotqueue.messages import Slip
from slotqueue.protocols import Command
from slotqueue.store import Commands
from slotqueue.testing.ledger import Book
from slotqueue.testing.steps import Died, Step

T = TypeVar("T")


class WatchedCommands(Commands):
    """Implements `slotqueue.protocols.Verbs`.

    Args:
        namespace: what every key begins with.
        book: where it is written down.
    """

    def __init__(self, namespace: str, book: Book) -> None:
        super().__init__(namespace)
        self._book = book

    def claim(self, offers: Sequence[Offer], *, replica: str, epoch: str, ahead_ms: int = 0) -> Command[Claims]:
        """See `Verbs.claim`."""
        command = super().claim(offers, replica=replica, epoch=epoch, ahead_ms=ahead_ms)
        return _watched(command, lambda claims: self._book.note_claims(offers, claims, replica))

    def miss(self, gaps: Sequence[Gap], *, replica: str, epoch: str) -> Command[list[int]]:
        """See `Verbs.miss`."""
        command = super().miss(gaps, replica=replica, epoch=epoch)
        return _watched(command, lambda recorded: self._book.note_gaps(gaps, recorded))

    def confirm(self, slips: Sequence[Slip]) -> Command[list[Verdict]]:
        """See `Verbs.confirm`."""

        def strike(_: list[Verdict]) -> None:
            for slip in slips:
                if self._book.strikes.at(self._book.of(slip.key).slot, Step.CONFIRMED):
                    raise Died

        return _watched(super().confirm(slips), strike)


def _watched(command: Command[T], note: Callable[[T], None]) -> Command[T]:
    def read(reply: Any) -> T:  # noqa: ANN401 - a reply is anything until it is read
        answer = command.read(reply)
        note(answer)
        return answer

    return replace(command, read=read)
