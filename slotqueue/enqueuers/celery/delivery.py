"""One message in a Celery worker: is it a slot, may it run, and how does its run end.

Where a message must not run, `Ignore` ends it: acknowledged, and the result backend left as it was. Where it must come
again, it is published once more under its id and with its headers, with a countdown: an early-acked message is no
longer the broker's, and a late-acked one that is rejected would come back at once.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from celery.exceptions import Ignore, Reject, Retry, WorkerShutdown, WorkerTerminate

from slotqueue.answers import Dropped, Word
from slotqueue.enqueuers.celery.message import BACK, FENCE, NO_TOKEN, TOKEN, slip_in, token_for
from slotqueue.enqueuers.celery.replacing import replaced_in
from slotqueue.enqueuers.celery.retries import NotTheLast, sent_retry
from slotqueue.errors import StoreUnavailable
from slotqueue.events import Event
from slotqueue.guard import SyncGuard
from slotqueue.guard_events import MessageDropped, MessageForeign, MessageHandedBack
from slotqueue.hold import Ending, Fail, Finish, Postpone, Vanish, describe
from slotqueue.interruption import Interruption, RunInterrupted
from slotqueue.messages import Slip
from slotqueue.policy import Terms
from slotqueue.protocols import ANY_FENCE
from slotqueue.slots import parse_key
from slotqueue.sync_hold import SyncHold

if TYPE_CHECKING:
    from slotqueue.enqueuers.celery.tasks import GuardedTask

AWAY_MS = 10_000
"""How long a message waits that found the store away, or a worker of another namespace."""
_LONGEST_BUSY_MS = 30_000
_TERMINATED = -(256 - signal.SIGTERM)
"""How a pool process exits that its parent terminates, where it gets that far."""
_PUBLISH_PAUSES = (0.2, 1.0, 3.0)


class SlotDelivery:
    """One delivery of a slot's message, where the task runs."""

    def __init__(self, guarded: GuardedTask, request: Any) -> None:  # noqa: ANN401 - Celery is untyped
        self._guarded = guarded
        self._task = guarded.task
        self._request = request
        self._headers = request.headers
        self._is_redelivered = bool((request.delivery_info or {}).get("redelivered"))
        self._is_handed_back = BACK in self._headers
        self._token = token_for(self._headers, lambda: secrets.token_hex(8), is_redelivered=self._is_redelivered)
        # What a retry or a message that is handed back must not copy.
        self._headers.pop(TOKEN)
        self._headers.pop(BACK, None)

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Run the slot if it may run; answers what the function answers.

        Raises:
            Ignore: it did not run, or its run counts no longer.
            Exception: the function's own.
        """
        slip = self._slip()
        guard = self._guard_for(slip)
        hold = self._begin(guard, slip)
        self._headers[FENCE] = str(hold.run.fence)
        try:
            with hold:
                if self._guarded.tracks_started:
                    mark_started(self._task, self._request)
                result = function(*args, **kwargs)
                if sent_retry(self._request) is not None:
                    raise NotTheLast(result)  # noqa: TRY301 - to the hold, which then ends as the judge says
        except NotTheLast as returned:
            self._stop_if_stale(hold)
            return returned.result
        except RunInterrupted:
            hold.abandon()
            self._headers.pop(FENCE)
            if hold.is_taken_over:
                raise Ignore("the slot was taken over") from None
            self._hand_back(guard, 0, "its lease could not be renewed")
        except Exception:
            self._stop_if_stale(hold)
            raise
        self._stop_if_stale(hold)
        return result

    def _begin(self, guard: SyncGuard, slip: Slip) -> SyncHold:
        try:
            answer = guard.begin(
                slip,
                from_fence=self._from_fence(),
                judge=self._judge,
                token=self._token,
                interruption=Interruption.here(),
            )
        except StoreUnavailable as error:
            self._hand_back(guard, AWAY_MS, f"no guard, no run: {error}", self._token)
        if not isinstance(answer, Dropped):
            return answer
        if answer.why is Word.BROKEN:
            self._hand_back(guard, AWAY_MS, f"the slot's keys in Redis cannot be used: {answer.detail}")
        if answer.why is Word.BUSY:
            if self._is_handed_back:  # it may be waiting for a lease of its own kind to pass
                wait = min(max(Terms.parse(slip.terms).lease // 2, 1000), _LONGEST_BUSY_MS)
                self._hand_back(guard, wait, "the slot is being run")
            guard.emit(MessageDropped(slip.key, parse_key(slip.key).job, "being run"))
        raise Ignore(f"the slot is {answer.why.value}")

    def _from_fence(self) -> str | int:
        """Which run sent this message; a redelivered one is whatever run was cut short or handed it back."""
        return self._headers.get(FENCE) or (ANY_FENCE if self._is_redelivered else "")

    def _judge(self, error: BaseException) -> Ending:
        """Say what an exception means in Celery, which is about to see it too."""
        sent = sent_retry(self._request) if isinstance(error, Exception) else None
        match sent or error:
            case Ignore():
                return self._ignored()
            case Retry(when=when):
                return Postpone("Celery retries it", _ms_until(when))
            case Reject(requeue=True) if self._task.acks_late:
                return Postpone("rejected, and the broker has it again")
            case WorkerShutdown() | WorkerTerminate():
                return Postpone("the worker stops")
            case SystemExit(code=code) if code == _TERMINATED:  # the parent process did it, and knows why
                return Vanish()
            case _:
                return Fail(describe(error))

    def _ignored(self) -> Ending:
        """The task says itself that it is over, or has put another one in its place, which goes on or does not."""
        when = replaced_in(self._request)
        return Finish() if when is None else Postpone("another task goes on in its place", _ms_until(when))

    def _stop_if_stale(self, hold: SyncHold) -> None:
        if hold.outcome is Word.STALE:
            raise Ignore("the slot was taken over; what this run has to say counts no longer") from None

    def _slip(self) -> Slip:
        try:
            slip = slip_in(self._headers)
        except ValueError as error:
            self._hand_back_foreign(str(error))
        if slip is None:
            raise Ignore("no slot")  # never: who calls has seen the header
        return slip

    def _guard_for(self, slip: Slip) -> SyncGuard:
        connection = self._guarded.app_guard.connection_of(slip)
        if connection is None:
            known = ", ".join(self._guarded.app_guard.connections)
            namespace = parse_key(slip.key).namespace
            self._hand_back_foreign(f"it is a slot of the namespace {namespace!r}, and this worker knows only {known}")
        return connection.guard()

    def _hand_back_foreign(self, why: str) -> NoReturn:
        any_guard = next(iter(self._guarded.app_guard.connections.values())).guard()
        self._hand_back(any_guard, AWAY_MS, why, event=MessageForeign(self._request.id, why))

    def _hand_back(
        self, guard: SyncGuard, delay_ms: int, why: str, back: str = NO_TOKEN, event: Event | None = None
    ) -> NoReturn:
        """Publish the message again, to come in a while."""
        key = str(self._request.id)
        guard.emit(event or MessageHandedBack(key, parse_key(key).job, why, delay_ms))
        request = self._request
        again = self._task.signature_from_request(
            request, request.args, request.kwargs, countdown=delay_ms / 1000 or None, retries=request.retries
        )
        again.options["headers"] = {**(again.options.get("headers") or {}), BACK: back}
        self._publish(again)
        raise Ignore(why)

    def _publish(self, again: Any) -> None:  # noqa: ANN401
        for pause in (*_PUBLISH_PAUSES, None):
            try:
                again.apply_async(retry=False)
            except Exception as error:
                if pause is None:
                    if self._task.acks_late:
                        raise Reject(error, requeue=True) from error
                    raise
                time.sleep(pause)
            else:
                return


def mark_started(task: Any, request: Any) -> None:  # noqa: ANN401
    """Store the state STARTED, as Celery's tracer would have."""
    is_ignored = vars(request).get("ignore_result")
    if not (task.ignore_result if is_ignored is None else is_ignored):
        about = {"pid": os.getpid(), "hostname": request.hostname}
        task.backend.store_result(request.id, about, "STARTED", request=request)


def _ms_until(when: float | datetime | None) -> int:
    if isinstance(when, datetime):
        aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(0, int((aware - datetime.now(UTC)).total_seconds() * 1000))
    return max(0, int((when or 0) * 1000))
