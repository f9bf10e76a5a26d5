"""Policies: what shall happen to a job's slots, checked once for each job.

`Terms` is what of a policy the store and the worker need, in milliseconds, with every default filled in. Its text
travels in the record and in the message, so that a slot is judged by the policy under which it was claimed, and a
record that Redis lost can be made anew by the worker that holds the message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self, get_args

from slotqueue.errors import ConfigurationError, near_names

OnCrash = Literal["skip", "complete"]
OnFailure = Literal["dead", "again"]
Overlap = Literal["allow", "forbid", "hold"]
Duration = timedelta | float

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LONGEST_HISTORY = timedelta(days=90)
_LONGEST_DURATION = timedelta(days=3660)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What shall happen to a job's slots. Durations are `timedelta` or seconds.

    Args:
        on_crash: a worker vanished in the middle of a run: `"skip"` (a repeat would be worse) or `"complete"` (a skip
            would be worse; the job must bear a repeat). There is no default: nobody else can know.
        on_failure: the worker system gave the job up: `"dead"`, or `"again"`: another attempt after 5 min, doubling.
        lookback: how many slots that nobody decided are worth catching up, 0 to 10 000.
        coalesce: of several undecided slots enqueue only the newest, record the others as missed.
        overlap: while another slot of the job is out (claimed, in the queue, running, to be run again): `"allow"`;
            `"forbid"`: the slot is recorded as skipped, with the slot in its way; `"hold"`: it waits, and goes out in
            the order of fire times. Only guarded workers say when a slot ends: under others nothing is in the way.
        max_held: under `overlap="hold"`, how many slots may wait, 1 to 1000; those beyond are skipped.
        jitter: the enqueue is delayed by up to this long, evenly, by a function of job and fire time.
        expires: a slot may begin no later than this after its fire time; None for no limit.
        done_within: a slot that is not done this long after its fire time is overdue. Default: the shorter of the
            period and 1 h.
        lease: how long a worker may be silent before its slot is taken over, 1 s to 1 day.
        requeue_after: a queued slot is enqueued again after this long, doubling; None for never. Default: 5 min
            under `on_crash="complete"`, never under `"skip"`; 30 s for functions of the process.
        max_attempts: attempts until the slot is dead, 1 to 1000. A crash or a final failure spends one.
        retention: how long claim and done marker live. Default: the longer of 24 h and 10 periods.
        history: how long the record lives after the end. Default: 200 periods, at most 90 days, never below
            `retention`; 90 days where the slot ended dead or lost.
    """

    on_crash: OnCrash | None = None
    on_failure: OnFailure = "dead"
    lookback: int = 3
    coalesce: bool = False
    overlap: Overlap = "allow"
    max_held: int = 10
    jitter: Duration = 0
    expires: Duration | None = None
    done_within: Duration | None = None
    lease: Duration = 60
    requeue_after: Duration | Literal["default"] | None = "default"
    max_attempts: int = 5
    retention: Duration | None = None
    history: Duration | None = None

    def with_fields(self, job: str, given: Mapping[str, Any]) -> Self:
        """Return a copy with some fields replaced.

        Raises:
            ConfigurationError: a name that is no field of a policy.
        """
        if not given:
            return self
        known = [each.name for each in fields(self)]
        for name in given:
            if name not in known:
                hint = near_names(name, known) or f"a policy has {', '.join(known)}"
                raise ConfigurationError(f"there is no such argument; {hint}", job=job, argument=name)
        return replace(self, **given)

    def with_requeue_after(self, default: timedelta | None) -> Self:
        """Return a copy with this `requeue_after` in the place of its default; None changes nothing."""
        if default is None or self.requeue_after != "default":
            return self
        return replace(self, requeue_after=default)


class Terms(NamedTuple):
    """A policy in the form of the store: words by their first letter, durations in ms, 0 for "none" or "never".

    The text form is these fields in this order, separated by blanks; scripts read it by position. Numbers that end in
    zeros are written as 864e5, which Lua reads as well: below 65 bytes, Redis keeps the whole record in one piece.
    """

    on_crash: str
    on_failure: str
    overlap: str
    """`"a"`, `"f"`, or `"h"` with how many slots may be held: `"h10"`."""
    lease: int
    requeue: int
    max_attempts: int
    retention: int
    history: int
    expires: int
    done_within: int
    longest_wait: int
    """The doubling of waits stops here: the longer of 1 h and the period."""

    @property
    def text(self) -> str:
        """What the record and the message carry."""
        return " ".join(map(_word, self))

    @property
    def is_complete(self) -> bool:
        """Whether a crashed run is repeated rather than skipped."""
        return self.on_crash == "c"

    @property
    def may_overlap(self) -> bool:
        """Whether a slot goes out however many others of its job are."""
        return self.overlap == "a"

    @property
    def max_held(self) -> int | None:
        """How many slots may be held; None where none ever is."""
        return _number(self.overlap[1:]) if self.overlap.startswith("h") else None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form.

        Raises:
            ValueError: fields are missing or no numbers.
        """
        words = text.split()
        if len(words) < len(cls._fields):
            raise ValueError(f"{text!r} lacks {len(cls._fields) - len(words)} of the terms")
        numbers = [_number(word) for word in words[3 : len(cls._fields)]]
        return cls(words[0], words[1], words[2], *numbers)


def terms_of(job: str, policy: Policy, period: timedelta) -> Terms:
    """Check a policy for one job and fill its defaults in.

    Raises:
        ConfigurationError: names the job, the argument and what would be right.
    """
    _check_words(job, policy)
    _whole(job, "lookback", policy.lookback, 0, 10_000)
    _whole(job, "max_attempts", policy.max_attempts, 1, 1000)
    _whole(job, "max_held", policy.max_held, 1, 1000)
    complete = policy.on_crash == "complete"

    def duration(name: str, default: timedelta, *, shortest: timedelta = timedelta(milliseconds=1)) -> timedelta:
        value = getattr(policy, name)
        return default if value is None else _duration(job, name, value, shortest=shortest)

    lease = duration("lease", timedelta(minutes=1), shortest=timedelta(seconds=1))
    if lease > DAY:
        raise ConfigurationError(
            f"a lease of {lease} would hide a crash for that long; use 1 day at most", job=job, argument="lease"
        )
    retention = duration("retention", max(DAY, period * 10))
    history = duration("history", max(retention, min(period * 200, LONGEST_HISTORY)))
    requeue = policy.requeue_after
    if requeue == "default":
        requeue = timedelta(minutes=5) if complete else None
    jitter = _duration(job, "jitter", policy.jitter, shortest=timedelta(0))
    _check_lives(job, policy, period, lease=lease, retention=retention, history=history, jitter=jitter)
    return Terms(
        on_crash=policy.on_crash[0] if policy.on_crash else "",
        on_failure=policy.on_failure[0],
        overlap=f"h{policy.max_held}" if policy.overlap == "hold" else policy.overlap[0],
        lease=_ms(lease),
        requeue=0 if requeue is None else _ms(_duration(job, "requeue_after", requeue, shortest=timedelta(seconds=1))),
        max_attempts=policy.max_attempts,
        retention=_ms(retention),
        history=_ms(history),
        expires=_ms(duration("expires", timedelta(0))),
        done_within=_ms(duration("done_within", min(period, HOUR))),
        longest_wait=_ms(max(HOUR, period)),
    )


class Resolved(NamedTuple):
    """A policy for jobs of one period: its terms, their text, and the longest delay of an enqueue in ms."""

    terms: Terms
    text: str
    jitter_ms: int


def resolve(job: str, policy: Policy, period: timedelta) -> Resolved:
    """Check a policy for one job and fill its defaults in; thousands of jobs share few policies, so it remembers.

    Raises:
        ConfigurationError: names the job, the argument and what would be right.
    """
    try:
        return _resolve_for_any(policy, period)
    except (ConfigurationError, TypeError):  # something is wrong with it: find out once more, for this job
        return _resolve(job, policy, period)


def _resolve(job: str, policy: Policy, period: timedelta) -> Resolved:
    terms = terms_of(job, policy, period)
    return Resolved(terms, terms.text, _ms(_duration(job, "jitter", policy.jitter, shortest=timedelta(0))))


@lru_cache(maxsize=1024)
def _resolve_for_any(policy: Policy, period: timedelta) -> Resolved:
    return _resolve("", policy, period)


def _check_words(job: str, policy: Policy) -> None:
    if policy.on_crash is None:
        raise ConfigurationError(
            'say whether a repeat or a skip is worse: "skip" (never begun twice) or "complete" (begun again until '
            "done), here (--on-crash on the command line) or in SlotQueue(defaults=Policy(on_crash=...))",
            job=job,
            argument="on_crash",
        )
    for name, allowed in (("on_crash", OnCrash), ("on_failure", OnFailure), ("overlap", Overlap)):
        value = getattr(policy, name)
        if value not in get_args(allowed):
            raise ConfigurationError(f"{value!r} is none of {', '.join(get_args(allowed))}", job=job, argument=name)
    if not isinstance(policy.coalesce, bool):
        raise ConfigurationError(f"{policy.coalesce!r} is neither True nor False", job=job, argument="coalesce")


def _check_lives(
    job: str,
    policy: Policy,
    period: timedelta,
    *,
    lease: timedelta,
    retention: timedelta,
    history: timedelta,
    jitter: timedelta,
) -> None:
    """A claim or done marker that dies before the last replica could ask for its slot would let the slot run again."""
    needed = period * (policy.lookback + 1) + jitter + lease + timedelta(minutes=1)
    if retention < needed:
        raise ConfigurationError(
            f"a claim that lives {retention} could be gone before a late replica asks for the slot; "
            f"lookback, jitter and lease need {needed} or more",
            job=job,
            argument="retention",
        )
    if history < retention:
        raise ConfigurationError(f"{history} is shorter than the retention, {retention}", job=job, argument="history")


def _whole(job: str, name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{value!r} is no whole number from {least} to {most}", job=job, argument=name)


def _duration(job: str, name: str, value: object, *, shortest: timedelta) -> timedelta:
    if isinstance(value, timedelta):
        found = value
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 1e12:
        found = timedelta(seconds=value)
    else:
        raise ConfigurationError(f"{value!r} is neither a timedelta nor seconds", job=job, argument=name)
    if not shortest <= found <= _LONGEST_DURATION:
        raise ConfigurationError(
            f"{found} is out of bounds: from {shortest} to {_LONGEST_DURATION.days} days", job=job, argument=name
        )
    return found


def _word(value: object) -> str:
    text = str(value)
    digits = text.rstrip("0")
    zeros = len(text) - len(digits)
    return f"{digits}e{zeros}" if digits and zeros > 2 else text


def _number(word: str) -> int:
    digits, _, zeros = word.partition("e")
    return int(digits + "0" * int(zeros)) if zeros.isdecimal() and len(zeros) < 3 else int(word)


def _ms(duration: timedelta) -> int:
    return math.ceil(duration / timedelta(milliseconds=1))
