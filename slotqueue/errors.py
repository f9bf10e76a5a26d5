"""Every error that slotqueue raises on purpose.

::

    SlotQueueError
    ├── ConfigurationError          something said in code or on the command line is wrong; also a ValueError
    │   ├── InvalidSchedule         a cron expression, an interval or a zone
    │   ├── MissingExtra            an optional dependency is not installed; also an ImportError
    │   └── VersionConflict         somebody else changed a stored job first
    ├── InvalidSlotKey              a text that is no slot key; also a ValueError
    ├── NotInSlot                   `current_slot()` outside a job; also a LookupError
    └── StoreUnavailable            Redis cannot be reached or refuses to work; asking again may help
        └── WrongStore              it is there, and not for this application: only other settings help

A lost race, a stale fence or a duplicate message is no error: those are answers, see `slotqueue.answers`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SlotQueueError(Exception):
    """The base of all errors of slotqueue."""


class ConfigurationError(SlotQueueError, ValueError):
    """Something said in code or on the command line cannot work.

    Args:
        problem: what is wrong and what would be right, one sentence.
        job: the job it is about, where there is one.
        argument: the argument it is about, where there is one.
    """

    def __init__(self, problem: str, *, job: str | None = None, argument: str | None = None) -> None:
        self.problem = problem
        self.job = job
        self.argument = argument
        about = [f"job {job!r}"] if job is not None else []
        about += [argument] if argument is not None else []
        super().__init__(f"{', '.join(about)}: {problem}" if about else problem)


class InvalidSchedule(ConfigurationError):
    """A cron expression, an interval or a time zone that names no fire times."""


class MissingExtra(ConfigurationError, ImportError):
    """An optional dependency is not installed; the message holds the line that installs it."""


class VersionConflict(ConfigurationError):
    """A stored job is not of the version that was named: somebody else was faster. Look at it, and ask again.

    Args:
        version: the one that is stored, 0 for none.
    """

    def __init__(self, problem: str, *, version: int, job: str | None = None, argument: str | None = None) -> None:
        super().__init__(problem, job=job, argument=argument)
        self.version = version


class InvalidSlotKey(SlotQueueError, ValueError):
    """A text that is no slot key, or a job name or fire time that cannot become one."""


class NotInSlot(SlotQueueError, LookupError):
    """`current_slot()` was called outside of a job that runs for a slot."""


class StoreUnavailable(SlotQueueError):
    """Redis cannot be reached, or refuses to work: loading, read-only, out of memory, a right that is missing.

    Nothing is known of the effect of the call that raised it; every verb may be asked again.
    """


class WrongStore(StoreUnavailable):
    """Redis is there, and not for an application with these settings: asking again helps once somebody changes them.

    The namespace belongs to another application, or the server is a node of a cluster that was named as if it stood
    alone. `slotqueue run` ends at once; what runs inside of another application does not take that down.
    """


def near_names(name: str, known: Iterable[str]) -> str:
    """Ask whether a known name was meant: "did you mean 'overlap'?"; "" where none comes close."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""
