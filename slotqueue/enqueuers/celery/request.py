"""A message in the worker's parent process: names its delivery, and reports what its pool process cannot report."""

from __future__ import annotations

import secrets
from functools import cache
from typing import TYPE_CHECKING, Any

from celery.exceptions import WorkerLostError
from celery.worker import state

from slotqueue.enqueuers.celery.message import SLIP, TOKEN, readable_slip_in, token_for

if TYPE_CHECKING:
    from slotqueue.enqueuers.celery.worker import AppGuard


@cache
def guarded_request(own: Any, guard: AppGuard) -> Any:  # noqa: ANN401 - Celery is untyped
    """Derive from a task's `Request` class, which may be the application's own."""

    class GuardedRequest(own):  # type: ignore[misc] # no types
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **kwargs)
            if SLIP in self._request_dict:
                redelivered = bool(self._delivery_info.get("redelivered"))
                token_for(self._request_dict, lambda: secrets.token_hex(8), is_redelivered=redelivered)

        def on_timeout(self, soft: bool, timeout: float) -> None:  # noqa: FBT001 - as Celery calls it
            super().on_timeout(soft, timeout)
            if not soft and not (self.task.acks_late and not self.task.acks_on_timeout):
                _fail(self, guard, f"TimeLimitExceeded: still running after {timeout:g} s")

        def on_failure(self, exc_info: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            result = super().on_failure(exc_info, *args, **kwargs)
            error = getattr(exc_info.exception, "exc", exc_info.exception)
            if isinstance(error, WorkerLostError | SystemExit) and not _is_sent_again(self):
                _fail(self, guard, f"{type(error).__name__}: {error}")
            return result

    return GuardedRequest


def _is_sent_again(request: Any) -> bool:  # noqa: ANN401
    """Whether Celery itself gives the message of a lost process to another one."""
    task = request.task
    is_cancelled = getattr(request, "_already_cancelled", False) or getattr(request, "_already_revoked", False)
    is_requeued = task.acks_late and task.reject_on_worker_lost
    return bool(is_cancelled or is_requeued or getattr(task, "retry_on_worker_lost", False))


def _fail(request: Any, guard: AppGuard, error: str) -> None:  # noqa: ANN401
    slip = readable_slip_in(request.request_dict)
    if slip is not None and state.should_terminate in (None, False):
        guard.fail(slip, request.request_dict[TOKEN], error)
