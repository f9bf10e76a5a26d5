"""A job as Redis keeps it: what `SlotQueue.add` is told, in JSON. It is checked where it is put, and again where it is
read: a replica may be of another version, or lack its worker system.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Self

from slotqueue.answers import StoredEntry
from slotqueue.errors import ConfigurationError
from slotqueue.job_builder import build_job
from slotqueue.jobs import Job
from slotqueue.policy import Policy
from slotqueue.protocols import Enqueuer
from slotqueue.schedule_text import parse_schedule, schedule_text
from slotqueue.schedules import Cron, Every

FORMAT = 1
_LONGEST = 65_536
_UNSAID = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """What is said about a stored job.

    Args:
        name: unique in the namespace.
        schedule: `Cron` or `Every`.
        task: the function's name in the worker system; None for the job's name.
        args, kwargs, options: of JSON values only.
        queue: None for the enqueuer's own.
        enqueuer: the kind, such as "arq"; None for the application's own.
        policy: with the defaults of the application that stored it merged in.
        by: who stored it.
    """

    name: str
    schedule: Cron | Every
    task: str | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    enqueuer: str | None = None
    policy: Policy
    by: str = ""

    def to_json(self) -> str:
        """The text form.

        Raises:
            ConfigurationError: what does not come back from JSON as it was, or is too long.
        """
        said: dict[str, Any] = {"format": FORMAT, "schedule": schedule_text(self.schedule)}
        for name in ("task", "queue", "enqueuer", "by"):
            said[name] = getattr(self, name)
        for name, value in (("args", list(self.args)), ("kwargs", dict(self.kwargs)), ("options", dict(self.options))):
            said[name] = _plain(self.name, name, value)
        said["policy"] = {
            each.name: _seconds(value)
            for each in fields(Policy)
            if (value := getattr(self.policy, each.name)) != getattr(_UNSAID, each.name)
        }
        text = json.dumps({name: value for name, value in said.items() if value}, allow_nan=False)
        if len(text) > _LONGEST:
            raise ConfigurationError(f"a job of {len(text)} bytes; {_LONGEST} at most can be stored", job=self.name)
        return text

    @classmethod
    def of(cls, entry: StoredEntry) -> Self:
        """Read an entry in Redis: see `from_json`."""
        return cls.from_json(entry.job, entry.text)

    @classmethod
    def from_json(cls, name: str, text: str) -> Self:
        """Read the text form.

        Raises:
            ConfigurationError: damaged, or of a newer version.
        """
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        is_form = isinstance(said, dict) and isinstance(said.get("policy", {}), dict)
        if not is_form or not isinstance(said.get("args", []), list):
            raise ConfigurationError(f"its text in Redis is damaged: {text[:100]!r}; put it again", job=name)
        written = said.pop("format", None)
        known = {each.name for each in fields(cls)} - {"name"}
        if written != FORMAT or not said.keys() <= known:
            more = ", ".join(sorted(said.keys() - known)) or f"format {written!r}"
            raise ConfigurationError(f"it was stored by a newer slotqueue ({more}); upgrade this process", job=name)
        said["schedule"] = parse_schedule(said.get("schedule", ""))
        said["policy"] = _UNSAID.with_fields(name, said.get("policy", {}))
        said["args"] = tuple(said.get("args", ()))
        return cls(name=name, **said)

    def build(
        self, enqueuers: Mapping[str, Enqueuer], default: Enqueuer | None, *, version: int = 0, since: int = 0
    ) -> Job:
        """Make the job of it, checked as `SlotQueue.add` checks.

        Args:
            enqueuers: by kind.
            default: for a job that names none.
            version, since: of the entry in Redis.

        Raises:
            ConfigurationError: it cannot be run here.
        """
        chosen = default if self.enqueuer is None else enqueuers.get(self.enqueuer)
        if chosen is None:
            kind = "of its own" if self.enqueuer is None else f"of the kind {self.enqueuer!r}"
            raise ConfigurationError(f"this application has no enqueuer {kind}", job=self.name, argument="enqueuer")
        job = self.checked(chosen.kind, version=version, since=since)
        chosen.check(job)
        return job

    def checked(self, kind: str, *, version: int = 0, since: int = 0) -> Job:
        """Check all that can be checked without the enqueuer: see `build`."""
        return build_job(
            self.name,
            self.schedule,
            self.policy,
            enqueuer=kind,
            task=self.task,
            args=self.args,
            kwargs=self.kwargs,
            queue=self.queue,
            options=self.options,
            stored=version,
            since=since,
        )


def _plain(job: str, argument: str, value: Any) -> Any:  # noqa: ANN401 - JSON is anything
    """Refuse what JSON would give back as something else: it has no tuples, no instants, no NaN."""
    try:
        is_plain = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError, RecursionError):
        is_plain = False
    if not is_plain:
        raise ConfigurationError(
            f"{value!r:.200} does not come back from JSON as it is; a stored job takes texts, numbers, true, false, "
            "null, and lists and objects of them",
            job=job,
            argument=argument,
        )
    return value


def _seconds(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value
