"""Retries that a run has sent. Most are thrown, and end the run; after `retry(throw=False)` it goes on, and returns.

Then nothing but the message tells that the slot is not done, so every retry is noted when it is sent.
"""

from __future__ import annotations

import functools
from typing import Any

_SENT = "__slotqueue_retry__"


class NotTheLast(Exception):
    """A run that has sent a retry and returned all the same.

    Args:
        result: what it returned.
    """

    def __init__(self, result: object) -> None:
        self.result = result


def note_retries(task: Any) -> None:  # noqa: ANN401 - Celery is untyped
    """Make a task note the retries that it sends, in its request.

    Raises:
        AttributeError: it does not let itself be wrapped.
    """
    retry = task.retry

    @functools.wraps(retry)
    def noted_retry(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        sent = retry(*args, **kwargs)
        setattr(task.request, _SENT, sent)
        return sent

    task.retry = noted_retry


def sent_retry(request: Any) -> Any:  # noqa: ANN401
    """The `Retry` of a retry that the run of this request has sent and not thrown; None where there is none."""
    return vars(request).get(_SENT)
