"""Redis's clock, seen from this process: the only clock that decides when a slot is due.

This process keeps its own monotonic clock and a measured offset to Redis's `TIME`. A host whose wall clock is wrong
fires neither early nor late. The same measurements tell how long contact with this Redis has been unbroken, which is
what a sweeper needs before it may judge that a lease has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_MS = 500
"""A jump of Redis's clock against ours by more than this is a step, not drift."""
_SILENCE_SECONDS = 15
"""Contact counts as broken after this long without an answer."""
_MEASUREMENT_LIVES_SECONDS = 30
_DRIFT = 1e-4
"""How much faster our clock may be than Redis's, at most: a crystal is off by half of that."""


class RedisClock:
    """Redis's time as this process estimates it.

    Args:
        monotonic: seconds of a clock that never steps.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._offset_ms: float | None = None
        self._uncertain_ms = 0.0
        self._measured_at = 0.0
        self._least_offset_ms: float | None = None
        self._least_measured_at = 0.0
        self._contact_since: float | None = None
        self._heard_at = 0.0

    @property
    def is_set(self) -> bool:
        """Whether Redis has answered at all."""
        return self._offset_ms is not None

    @property
    def uncertain_ms(self) -> float:
        """How far the estimate may be off: half the round trip, and half of what was cut off from the answer."""
        return self._uncertain_ms

    def now_ms(self) -> int:
        """Redis's time now, whole ms since the epoch; the host's own as long as Redis has not answered."""
        return int(self.exact_ms())

    def exact_ms(self) -> float:
        """The same with its fraction."""
        if self._offset_ms is None:
            return time.time() * 1000
        return self.monotonic() * 1000 + self._offset_ms

    def surely_at(self, ms: float) -> float:
        """When Redis's clock has surely come to an instant of its own, in seconds of `monotonic`.

        Half a round trip later than it is likely to, or less: what the quickest of the latest answers has taken. Early
        by no more than that where Redis's clock has been set back since the last answer by so little that nobody saw.
        """
        now = self.monotonic()
        least = self._least_at(now)
        if least is None:
            return now + ms / 1000 - time.time()
        return (ms - least) / 1000

    def host_offset_ms(self) -> float:
        """How far the host's wall clock is ahead of Redis's."""
        return time.time() * 1000 - self.now_ms()

    def observe(self, sent: float, now_ms: float, *, precision_ms: float = 1.0) -> float:
        """Take in an answer that just arrived.

        Args:
            sent: when the question was sent, by `monotonic`.
            now_ms: Redis's time in the answer.
            precision_ms: of what length a piece was cut off from it.

        Returns:
            By how many ms Redis's clock has stepped against ours; 0.0 for none.
        """
        received = self.monotonic()
        uncertain = (received - sent) * 500 + precision_ms / 2
        offset = now_ms + precision_ms / 2 - (sent + received) * 500
        step = 0.0
        if self._offset_ms is None:
            self._keep(offset, uncertain, received)
        else:
            apart = offset - self._offset_ms
            if abs(apart) > STEP_MS + uncertain + self._uncertain_ms:
                step = apart
                self._contact_since = None
            is_old = received - self._measured_at > _MEASUREMENT_LIVES_SECONDS
            if uncertain <= self._uncertain_ms or is_old or abs(apart) > uncertain + self._uncertain_ms:
                self._keep(offset, uncertain, received)
        # Redis's clock stands at the answer's time or later by now, and stood there or earlier when it was asked.
        least, kept = now_ms - received * 1000, self._least_at(received)
        if kept is None or kept <= least or kept > now_ms + precision_ms - sent * 1000:
            self._least_offset_ms, self._least_measured_at = least, received
        if self._contact_since is None or received - self._heard_at > _SILENCE_SECONDS:
            self._contact_since = sent
        self._heard_at = received
        return step

    def lose_contact(self) -> None:
        """Note that Redis did not answer: leases that passed meanwhile may have been renewed by nobody's fault."""
        self._contact_since = None

    def contact_ms(self) -> int:
        """How long Redis has answered without a break or a step of its clock."""
        return 0 if self._contact_since is None else int((self.monotonic() - self._contact_since) * 1000)

    def _least_at(self, now: float) -> float | None:
        """By how much Redis's clock is ahead of ours at least; the older the measurement, the less it says."""
        if self._least_offset_ms is None:
            return None
        return self._least_offset_ms - (now - self._least_measured_at) * 1000 * _DRIFT

    def _keep(self, offset: float, uncertain: float, at: float) -> None:
        self._offset_ms, self._uncertain_ms, self._measured_at = offset, uncertain, at
