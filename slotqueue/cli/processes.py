"""`slotqueue replicas` and `slotqueue workers`: who is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict

import click

from slotqueue.cli.options import app_argument, json_option, site_options
from slotqueue.cli.tables import print_json, print_table
from slotqueue.cli.teaching import Taught
from slotqueue.cli.watching import watch_option, watching
from slotqueue.cli.where import site_from
from slotqueue.ops.processes import ReplicaSeen, WorkerSeen
from slotqueue.ops.processes import replicas as replicas_of
from slotqueue.ops.processes import workers as workers_of
from slotqueue.ops.site import Site
from slotqueue.words import duration, instant

Processes = Sequence[ReplicaSeen] | Sequence[WorkerSeen]
_REPLICA = ["replica", "version", "up since", "last tick", "clock", "jobs", "note"]
_WORKER = ["worker", "version", "last seen", "tasks", "note"]


@click.command(cls=Taught, examples=[("slotqueue replicas --redis redis://localhost:6379/0 --watch 2", "")])
@app_argument
@site_options
@watch_option
@json_option
def replicas(
    app: str | None,
    redis: str | None,
    namespace: str | None,
    watch: float | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """List the replicas: version, up since when, last tick (within 10 s), clock against Redis's, how many jobs.

    One that gave no sign for a minute is silent: it was killed, it hangs, or it does not reach Redis.
    """
    _list(site_from(app, redis, namespace), replicas_of, _print_replicas, watch=watch, as_json=as_json)


@click.command(cls=Taught, examples=[("slotqueue workers --redis redis://localhost:6379/0", "")])
@app_argument
@site_options
@watch_option
@json_option
def workers(
    app: str | None,
    redis: str | None,
    namespace: str | None,
    watch: float | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """List the guarded workers: version, their tasks, and when each was last seen (they report every 20 s).

    One that has not reported for a minute is silent: it was killed, it hangs, or it does not reach Redis.
    """
    _list(site_from(app, redis, namespace), workers_of, _print_workers, watch=watch, as_json=as_json)


def _list(
    site: Site,
    question: Callable[[Site], Awaitable[Processes]],
    answer: Callable[[Processes], None],
    *,
    watch: float | None,
    as_json: bool,
) -> None:
    watching(site, question, _print_json if as_json else answer, watch=watch, as_json=as_json)


def _print_json(found: Processes) -> None:
    print_json([asdict(each) for each in found])


def _print_replicas(found: Processes) -> None:
    rows = [_replica_row(each) for each in found if isinstance(each, ReplicaSeen)]
    if rows:
        print_table(_REPLICA, rows, drop=["note", "version", "up since"])
    else:
        click.echo("no replica is in the registry: none has come, or all have left")


def _print_workers(found: Processes) -> None:
    rows = [_worker_row(each) for each in found if isinstance(each, WorkerSeen)]
    if rows:
        print_table(_WORKER, rows, drop=["note", "version"], fold="tasks")
    else:
        click.echo("no guarded worker is in the registry: none has come, or all have left")


def _replica_row(each: ReplicaSeen) -> list[str]:
    up = instant(each.up_since) if each.up_since else ""
    offset = each.clock_offset * 1000
    clock = f"{duration(offset)} {'ahead' if offset > 0 else 'behind'}" if abs(offset) >= 1 else "in step"
    return [
        each.id,
        each.version,
        up,
        instant(each.last_tick),
        clock,
        str(each.jobs),
        _silent(is_silent=each.is_silent),
    ]


def _worker_row(each: WorkerSeen) -> list[str]:
    return [each.id, each.version, instant(each.last_seen), ", ".join(each.tasks), _silent(is_silent=each.is_silent)]


def _silent(*, is_silent: bool) -> str:
    return "silent: killed, hung or cut off from Redis" if is_silent else ""
