"""`slotqueue jobs put`, `list` and `remove`: the jobs that are stored in Redis, changed while replicas run."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import click

from slotqueue.cli.failing import Wrong, printable
from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.verbs import Verb, Verbs
from slotqueue.cli.where import ask, site_from
from slotqueue.ops.site import Site
from slotqueue.ops.stored import Stored, in_code, put, remove, stored
from slotqueue.policy import Policy
from slotqueue.words import instant, schedule_words

_COLUMNS = ["job", "schedule", "task", "arguments", "version", "stored", "by", "note"]
_DROP = ["stored", "by", "arguments", "task", "version", "note"]
_URL = "--redis redis://localhost:6379/0"

_VERBS = {
    "put": Verb("slotqueue.cli.jobs:put_job", "Store a job, or change it."),
    "list": Verb("slotqueue.cli.jobs:list_jobs", "List the stored jobs."),
    "remove": Verb("slotqueue.cli.jobs:remove_job", "Remove a stored job: it stops everywhere."),
}


@click.command(
    cls=Verbs,
    verbs=_VERBS,
    examples=[
        (f'slotqueue jobs put digest "every 5 min" --task send_digest --on-crash skip {_URL}', ""),
        (f"slotqueue jobs list {_URL}", ""),
        (f"slotqueue jobs remove digest {_URL}", ""),
    ],
)
def jobs() -> None:
    """Jobs that are stored in Redis, beside those in code.

    Every replica of the namespace works by a change within two seconds, without a restart. A job in code goes before a
    stored one of its name.
    """


class Json(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A JSON value of one kind."""

    def __init__(self, kind: type, looks_like: str) -> None:
        self.name = "json"
        self._kind = kind
        self._looks_like = looks_like

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Read it, or fail with what one looks like."""
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, self._kind):
            self.fail(f"{value!r} is not what is wanted; right is JSON such as {self._looks_like}", param, ctx)
        return found


def _version_option(verb: Any) -> Any:  # noqa: ANN401 - click's own
    return click.option(
        "--version",
        type=click.IntRange(0),
        metavar="N",
        help="Only if this version is the one that is stored, 0 for none: so that nobody's change is overwritten.",
    )(verb)


@click.command(
    "put",
    cls=Taught,
    examples=[
        (f'slotqueue jobs put digest "every 5 min" --task send_digest --on-crash skip {_URL}', ""),
        (
            f'slotqueue jobs put nightly "cron 0 3 * * * Europe/Berlin" --on-crash complete --set expires=3600 {_URL}',
            "",
        ),
        (
            """slotqueue jobs put digest "every 5 min" --kwargs '{"kind": "short"}' --app app:slots""",
            "checked with code",
        ),
    ],
)
@click.argument("words", nargs=-1, required=True, metavar="[MODULE:ATTRIBUTE] JOB SCHEDULE")
@click.option("--task", metavar="NAME", help="The function's name in the worker system.  [default: JOB]")
@click.option("--args", type=Json(list, '["a", 1]'), metavar="JSON", help="Its arguments: a list.")
@click.option(
    "--kwargs", type=Json(dict, '{"kind": "short"}'), metavar="JSON", help="Its arguments by name: an object."
)
@click.option("--queue", metavar="NAME", help="The queue.  [default: the enqueuer's own]")
@click.option("--options", type=Json(dict, '{"priority": 5}'), metavar="JSON", help="What else the message shall say.")
@click.option(
    "--enqueuer", metavar="KIND", help="The worker system, such as arq or celery.  [default: each application's own]"
)
@click.option(
    "--on-crash",
    type=click.Choice(["skip", "complete"]),
    help="Its worker vanished: never begin again, or begin again until done.  [default: the application's]",
)
@click.option(
    "--set",
    "said",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Another field of the policy, such as lookback=0, expires=60 (seconds) or coalesce=true; again and again.",
)
@_version_option
@site_options
@json_option
def put_job(  # noqa: PLR0913, PLR0917 - a job has as many sides
    words: tuple[str, ...],
    task: str | None,
    args: list[Any] | None,
    kwargs: dict[str, Any] | None,
    queue: str | None,
    options: dict[str, Any] | None,
    enqueuer: str | None,
    on_crash: str | None,
    said: tuple[str, ...],
    version: int | None,
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Store a job, or another version of it; every replica works by it within two seconds.

    SCHEDULE is a text: "every 5 min", "every 1 h offset 10 min", "cron 0 3 * * * Europe/Berlin", "@daily". It is
    checked as in code. Where no application is named, --on-crash has to be said, and whether the workers know the task
    cannot be checked.
    """
    app, name, schedule = _split(words, ("JOB", "SCHEDULE"))
    policy: dict[str, Any] = {**_fields(name, said), **({"on_crash": on_crash} if on_crash else {})}
    site = site_from(app, redis, namespace)
    found = ask(
        site,
        lambda site: put(
            site,
            name,
            schedule,
            task=task,
            args=args or (),
            kwargs=kwargs,
            queue=queue,
            options=options,
            enqueuer=enqueuer,
            version=version,
            **policy,
        ),
    )
    if as_json:
        print_json(_facts(found))
    else:
        soon = "" if found.problem else "; replicas work by it within 2 s"
        click.echo(f"stored {printable(name)!r} as version {found.version}{soon}")
    if found.problem:
        click.echo(f"Note: {printable(found.problem)}", err=True)


@click.command("list", cls=Taught, examples=[(f"slotqueue jobs list {_URL}", ""), ("slotqueue jobs list --json", "")])
@app_argument
@site_options
@json_option
def list_jobs(app: str | None, redis: str | None, namespace: str | None, as_json: bool) -> None:  # noqa: FBT001
    """List the stored jobs, by name. Jobs in code are not among them: `slotqueue check app:slots` shows those."""
    found = ask(site_from(app, redis, namespace), stored)
    if as_json:
        print_json([_facts(each) for each in found])
    elif found:
        print_table(_COLUMNS, [_row(each) for each in found], drop=_DROP, fold="note")
    else:
        click.echo("no job is stored")


@click.command(
    "remove",
    cls=Taught,
    examples=[
        (f"slotqueue jobs remove digest {_URL}", ""),
        (f"slotqueue jobs remove digest --version 1764504929123 {_URL}", "only what you have seen"),
    ],
)
@click.argument("words", nargs=-1, required=True, metavar="[MODULE:ATTRIBUTE] JOB")
@_version_option
@site_options
def remove_job(words: tuple[str, ...], version: int | None, redis: str | None, namespace: str | None) -> None:
    """Remove a stored job: it stops everywhere, at once.

    From then on no slot of it is claimed, and none that was claimed before begins; what runs, runs to its end. Stored
    again, it is a new job and owes nothing from before. A job in code is taken out there.
    """
    app, name = _split(words, ("JOB",))

    async def removing(site: Site) -> bool:
        is_in_code = await in_code(site, name)
        await remove(site, name, version=version)
        return is_in_code

    is_in_code = ask(site_from(app, redis, namespace), removing)
    what = "the job of this name in code goes on" if is_in_code else "none of its slots begins any more"
    click.echo(f"removed {printable(name)!r}; {what}")


def _split(words: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[Any, ...]:
    """Tell an application from what is wanted, by how many words there are."""
    if not 0 <= len(words) - len(wanted) <= 1:
        raise Wrong(
            f"{len(words)} words; say [MODULE:ATTRIBUTE] {' '.join(wanted)}, each with blanks in it between quotes, "
            """such as digest "every 5 min\""""
        )
    return words if len(words) > len(wanted) else (None, *words)


def _fields(job: str, said: tuple[str, ...]) -> dict[str, Any]:
    """Read FIELD=VALUE: JSON where it is JSON, else a word."""
    found = {}
    for each in said:
        name, is_said, text = each.partition("=")
        if not is_said or not text:
            known = ", ".join(field.name for field in fields(Policy))
            raise Wrong(f"job {job!r}: {each!r} is no FIELD=VALUE; a policy has {known}")
        try:
            found[name.replace("-", "_")] = json.loads(text)
        except ValueError:
            found[name.replace("-", "_")] = text
    return found


def _row(found: Stored) -> list[str]:
    job = found.job
    said = [] if job is None else [job.enqueuer or "", job.task or found.name]
    arguments = (
        [] if job is None else [*map(json.dumps, job.args), *(f"{k}={json.dumps(v)}" for k, v in job.kwargs.items())]
    )
    return [
        found.name,
        "?" if job is None else schedule_words(job.schedule),
        ":".join(filter(None, said)),
        ", ".join(arguments),
        str(found.version),
        instant(found.stored_at.replace(microsecond=0)),
        "" if job is None else job.by,
        found.problem,
    ]


def _facts(found: Stored) -> dict[str, Any]:
    """A stored job for programs: what was said, and its version."""
    said = {} if found.job is None else {**json.loads(found.job.to_json()), "schedule": str(found.job.schedule)}
    about = {"name": found.name, "version": found.version, "stored_at": found.stored_at, "problem": found.problem}
    return {**about, **said}
