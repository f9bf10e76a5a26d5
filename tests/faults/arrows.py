"""What happens where a process is killed: the data that the tests of faults run by and the documents are made from."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fleet.orders import Arrow


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of the slot.

    Args:
        words: for people, one sentence.
        runs: how often its function is started.
        state: in which it ends.
    """

    words: str
    runs: int
    state: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One place to be killed at.

    Args:
        victim: which process: "replica" or "worker".
        arrow: where.
        complete: under `on_crash="complete"`.
        skip: under `on_crash="skip"`.
    """

    victim: str
    arrow: Arrow
    complete: Outcome
    skip: Outcome

    def outcome(self, policy: str) -> Outcome:
        """Under this policy."""
        return self.complete if policy == "complete" else self.skip


def _both(victim: str, arrow: Arrow, words: str, runs: int, state: str) -> Fault:
    outcome = Outcome(words, runs, state)
    return Fault(victim, arrow, outcome, outcome)


_SENT_AGAIN = "It had not begun: another replica sends it once its grace has passed."
_NOTHING_LOST = "The message is on the queue."
_REPEATED = "Another worker begins it again once the lease has passed."
_LOST = "It had begun; it is listed once the lease has passed."
_UNKNOWABLE = "Nobody can say that the work was done; it is listed once the lease has passed."

GUARDED = [
    _both("replica", Arrow.CLAIMED, _SENT_AGAIN, 1, "done"),
    _both("replica", Arrow.ENQUEUED, _NOTHING_LOST, 1, "done"),
    _both("replica", Arrow.CONFIRMED, _NOTHING_LOST, 1, "done"),
    _both("worker", Arrow.TAKEN, "It had not begun: arq gives the message to another worker.", 1, "done"),
    Fault("worker", Arrow.BEGUN, Outcome(_REPEATED, 1, "done"), Outcome(_LOST, 0, "lost")),
    Fault("worker", Arrow.RUNNING, Outcome(_REPEATED, 2, "done"), Outcome(_LOST, 1, "lost")),
    Fault("worker", Arrow.RETURNED, Outcome(_REPEATED, 2, "done"), Outcome(_UNKNOWABLE, 1, "lost")),
    Fault("worker", Arrow.FINISH_UNSENT, Outcome(_REPEATED, 2, "done"), Outcome(_UNKNOWABLE, 1, "lost")),
    _both("worker", Arrow.FINISH_UNHEARD, "The done marker is there, and stops every later copy.", 1, "done"),
]
"""Workers with the guard: what they begin and finish is known."""

_IN_LINE = "It had not begun: another replica runs it once `requeue_after` has passed."
_RUN_AGAIN = "Another replica runs it again once the lease has passed."

IN_PROCESS = [
    _both("replica", Arrow.CLAIMED, "It had not begun: another replica runs it once its grace has passed.", 1, "done"),
    _both("replica", Arrow.CONFIRMED, _IN_LINE, 1, "done"),
    Fault("replica", Arrow.BEGUN, Outcome(_RUN_AGAIN, 1, "done"), Outcome(_LOST, 0, "lost")),
    Fault("replica", Arrow.RUNNING, Outcome(_RUN_AGAIN, 2, "done"), Outcome(_LOST, 1, "lost")),
    Fault("replica", Arrow.RETURNED, Outcome(_RUN_AGAIN, 2, "done"), Outcome(_UNKNOWABLE, 1, "lost")),
    _both("replica", Arrow.FINISH_UNHEARD, "The done marker is there, and stops every later copy.", 1, "done"),
]
"""Functions of the replica's own process (`@slots.job`): whoever won a slot runs it."""

_MAYBE_TWICE = "Another replica sends it again: nobody reports that it has run."
_ARQS_AFFAIR = "Sent once; the crash is arq's affair, and arq runs it again."

UNGUARDED = [
    Fault(
        "replica",
        Arrow.CLAIMED,
        Outcome("Another replica sends it once its grace has passed.", 1, "sent"),
        Outcome("It is listed: nobody reports whether it was sent.", 0, "lost"),
    ),
    Fault(
        "replica",
        Arrow.ENQUEUED,
        Outcome(_MAYBE_TWICE, 2, "sent"),
        Outcome("It runs, and is listed all the same: nobody reports whether it was sent.", 1, "lost"),
    ),
    _both("replica", Arrow.CONFIRMED, "The message is on the queue.", 1, "sent"),
    _both("worker", Arrow.RUNNING, _ARQS_AFFAIR, 2, "sent"),
]
"""Workers without the guard: a message is sent once, and nobody says what became of it."""
