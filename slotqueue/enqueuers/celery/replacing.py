"""Tasks that put another one in their place: the slot is done when that one is.

The message of the task that replaces another carries the slip and the fence, as the message of a retry does, so the
slot waits for it as `postponed`, and a guarded worker goes on with it. Only a single task that is guarded here can do
so: where a chain or a group comes in its place, the slot is done at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from celery.canvas import Signature

from slotqueue.enqueuers.celery.message import FENCE

_BY = "__slotqueue_replaced__"
_OURS = "slotqueue"


def follow_replacements(task: Any, is_guarded: Callable[[str], bool]) -> None:  # noqa: ANN401 - Celery is untyped
    """Let what replaces a task go on with its slot.

    Args:
        task: Celery's.
        is_guarded: whether workers like this one guard the task of this name.

    Raises:
        AttributeError: it does not let itself be wrapped.
    """
    replace = task.replace

    @functools.wraps(replace)
    def followed_replace(sig: Any) -> Any:  # noqa: ANN401
        headers = task.request.headers or {}
        if FENCE in headers and type(sig) is Signature and is_guarded(sig.task):
            ours = {name: value for name, value in headers.items() if name.startswith(_OURS)}
            sig.set(headers={**(sig.options.get("headers") or {}), **ours})
            setattr(task.request, _BY, sig.options.get("countdown") or sig.options.get("eta") or 0)
        return replace(sig)

    task.replace = followed_replace


def replaced_in(request: Any) -> Any:  # noqa: ANN401
    """When the task begins that goes on with the slot of this request: seconds, or an instant; None where none does."""
    return vars(request).get(_BY)
