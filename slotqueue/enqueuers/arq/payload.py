"""What stands in arq's Redis under the id of a slot: arq's own payload plus the slip, and arq's own results.

A worker without the guard reads the payload as any other: arq looks at its own five entries only.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from arq.jobs import Deserializer, Serializer, deserialize_result
from arq.worker import JobExecutionFailed

from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.messages import Message, Slip
from slotqueue.slots import SlotState

SLIP_ENTRY = "slot"

_NOT_FINAL_WHEN_POSTPONED = ("max ", "job expired")
"""How arq's words begin where it lost a message that was to come back: nobody said that the job failed."""


def payload_of(message: Message, now_ms: int, serializer: Serializer | None) -> bytes:
    """Serialise a message for arq.

    Args:
        message: for the queue.
        now_ms: by this host's clock, as arq's own; jobs and logs show it, nothing is decided by it.
        serializer: the workers', None for pickle.

    Raises:
        Exception: whatever the serializer raises for these arguments.
    """
    entries = _entries(message.task, message.args, message.kwargs, now_ms)
    entries[SLIP_ENTRY] = message.slip.to_json()
    return (serializer or pickle.dumps)(entries)


def slip_in(payload: bytes, deserializer: Deserializer | None) -> Slip | None:
    """Read the slip of a payload; None where it has none.

    Raises:
        ValueError: marked as a slot, but the slip cannot be read.
    """
    try:
        text = (deserializer or pickle.loads)(payload)[SLIP_ENTRY]
    except Exception:  # noqa: BLE001 - not ours, then: arq has read this payload before, with the same deserializer
        return None
    try:
        return Slip.from_json(text)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"its slip cannot be read, it may be from a newer version: {error}") from error


def check_arguments(job: Job, serializer: Serializer | None, deserializer: Deserializer | None) -> None:
    """Refuse a job whose arguments arq could not carry, or whose slip would be lost on the way.

    Raises:
        ConfigurationError: names the job and the argument.
    """
    for option in job.options:
        raise ConfigurationError(
            "arq knows no options of a message; its workers say time limits and tries, a function each",
            job=job.name,
            argument=f"options[{option!r}]",
        )
    if serializer is None and not job.args and not job.kwargs:
        return
    dump: Callable[[dict[str, Any]], bytes] = serializer or pickle.dumps
    whole = {**_entries(job.task, job.args, job.kwargs), SLIP_ENTRY: "slip"}
    try:
        payload = dump(whole)
    except Exception as error:  # noqa: BLE001 - serializers raise what they like
        argument, cause = _refused_part(job, dump) or ("args and kwargs", error)
        raise ConfigurationError(
            f"arq's serializer refuses it ({type(cause).__name__}: {cause}); use values that it can carry",
            job=job.name,
            argument=argument,
        ) from cause
    load: Deserializer | None = pickle.loads if serializer is None else deserializer
    if load is None:
        return
    try:
        is_kept = load(payload).get(SLIP_ENTRY) == "slip"
    except Exception as error:
        raise ConfigurationError(
            f"what arq's serializer makes of them cannot be read back ({type(error).__name__}: {error})",
            job=job.name,
            argument="args and kwargs",
        ) from error
    if not is_kept:
        raise ConfigurationError(
            f"the serializer drops the entry {SLIP_ENTRY!r}, so that no worker could tell a slot; keep every entry",
            job=job.name,
            argument="job_serializer",
        )


def why_given_up(result: bytes, state: str, deserializer: Deserializer | None) -> str | None:
    """Read from arq's result whether it has given a waiting slot up; None where it has not, or cannot be read.

    A slot that waits as `postponed` was handed back cleanly: that arq counted too many tries, or did not find the
    message any more, is no failure of the job, and the sweep sends it again.
    """
    try:
        found = deserialize_result(result, deserializer=deserializer)
    except Exception:  # noqa: BLE001 - an exception class that this process does not have, for example
        return None
    if found.success:
        return None
    if isinstance(found.result, asyncio.CancelledError):
        return "aborted in arq"
    text = str(found.result)
    if (
        state == SlotState.POSTPONED
        and isinstance(found.result, JobExecutionFailed)
        and text.startswith(_NOT_FINAL_WHEN_POSTPONED)
    ):
        return None
    return f"arq gave it up: {text or type(found.result).__name__}"[:1024]


def _refused_part(job: Job, dump: Callable[[dict[str, Any]], bytes]) -> tuple[str, Exception] | None:
    """Which argument alone the serializer refuses, and how; None where it takes each of them."""
    parts = [(f"args[{i}]", _entries(job.task, (value,), {})) for i, value in enumerate(job.args)]
    parts += [(f"kwargs[{name!r}]", _entries(job.task, (), {name: value})) for name, value in job.kwargs.items()]
    for argument, entries in parts:
        try:
            dump(entries)
        except Exception as error:  # noqa: BLE001 - as in check_arguments
            return argument, error
    return None


def _entries(task: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], now_ms: int = 0) -> dict[str, Any]:
    return {"t": None, "f": task, "a": args, "k": dict(kwargs), "et": now_ms}
