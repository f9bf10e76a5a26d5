"""What the queue is given, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from slotqueue.policy import Terms

_quote = json.encoder.encode_basestring_ascii


# Values like all the others, and yet not frozen: a burst makes thousands of them, and frozen ones take thrice as long.
@dataclass(slots=True, unsafe_hash=True)
class Slip:
    """What a message says of its slot: enough to begin it, and to make a record anew that Redis lost.

    Args:
        key: the slot key, also the message id.
        n: the enqueue number, 0 for the first.
        fire: fire time, ms since the epoch.
        start: start of the interval, ms since the epoch.
        task: the task with its worker system, "arq:send_digest".
        version: the version of the job.
        terms: `Terms.text`.
    """

    key: str
    n: int
    fire: int
    start: int
    task: str
    version: str
    terms: str

    def to_json(self) -> str:
        """The text form for a payload or a header: a JSON list of the fields."""
        # Put together by hand: json.dumps takes five times as long, for every message of a burst.
        numbers = f"{self.n}, {self.fire}, {self.start}"
        return f"[{_quote(self.key)}, {numbers}, {_quote(self.task)}, {_quote(self.version)}, {_quote(self.terms)}]"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text form.

        Raises:
            ValueError: the text is not of this form.
        """
        try:
            key, n, fire, start, task, version, terms = json.loads(text)
            Terms.parse(terms)
            return cls(str(key), int(n), int(fire), int(start), str(task), str(version), terms)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"no slip of a slot: {text[:200]!r}") from error


class NotBefore(NamedTuple):
    """An instant to come.

    Args:
        ms: by Redis's clock, ms since the epoch.
        monotonic: by when Redis's clock has surely come to it, in seconds of this process's `time.monotonic`.
    """

    ms: int
    monotonic: float


@dataclass(slots=True)
class Message:
    """One unit for the queue; its id is `slip.key`.

    Args:
        slip: what it says of its slot.
        task: the function's name in the worker system.
        args, kwargs: the function's arguments.
        queue: None for the enqueuer's own.
        before: the state that the slot was taken over from, "" at its first enqueue.
        options: of the job.
        not_before: of a message that is handed over ahead of its time: no worker may take it earlier. See
            `slotqueue.protocols.Enqueuer`.
    """

    slip: Slip
    task: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    queue: str | None
    before: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    not_before: NotBefore | None = None


class Accepted(NamedTuple):
    """The queue holds the message now; `is_new` is False where it held it already."""

    is_new: bool = True


class Refused(NamedTuple):
    """The queue refused the message, or may have.

    `is_sent_possible`: it may have arrived all the same, a lost reply for example.
    """

    problem: str
    is_sent_possible: bool = False


Delivery = Accepted | Refused


class Waiting(NamedTuple):
    """An open slot whose message is out: queued or postponed, with the number of its enqueue."""

    key: str
    state: str
    n: int
    task: str
