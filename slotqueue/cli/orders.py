"""`slotqueue retry`, `rerun` and `trigger`: an operator has single slots run."""

from __future__ import annotations

from dataclasses import asdict

import click

from slotqueue.cli.failing import FOUND_SOMETHING, Wrong, printable
from slotqueue.cli.options import json_option, site_options
from slotqueue.cli.tables import print_json
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.cli.words import one, split_app
from slotqueue.ops import orders
from slotqueue.ops.orders import Order
from slotqueue.ops.site import canonical
from slotqueue.slots import parse_key

_KEY_WORDS = "[MODULE:ATTRIBUTE] KEY"


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue retry ran:nightly:2026-10-02T03:00 --redis redis://localhost:6379/0", ""),
        ("slotqueue dead --redis redis://localhost:6379/0 --retry-all --yes", "all that were given up or lost"),
    ],
)
@click.argument("words", nargs=-1, required=True, metavar=_KEY_WORDS)
@site_options
@json_option
@click.pass_context
def retry(
    ctx: click.Context,
    words: tuple[str, ...],
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Bring a dead, lost, missed or skipped slot back: under the same id, and its attempts start anew.

    The next sweep of any replica that knows the job enqueues it; it may begin however late it is. A slot without a
    record, such as one of a gap of missed slots, needs its application.

    Exit code 1 where the slot is in no such state, or its job is paused: nothing is changed then.
    """
    app, key = _key_of(words, redis)
    site = site_from(app, redis, namespace, own_namespace=parse_key(key).namespace)
    _print(ctx, ask(site, lambda site: orders.retry(site, key)), as_json=as_json)


@click.command(
    cls=Taught,
    examples=[("slotqueue rerun ran:nightly:2026-10-02T03:00 --yes --redis redis://localhost:6379/0", "")],
)
@click.argument("words", nargs=-1, required=True, metavar=_KEY_WORDS)
@click.option("--yes", is_flag=True, help="Yes, its work shall be repeated.")
@site_options
@json_option
@click.pass_context
def rerun(
    ctx: click.Context,
    words: tuple[str, ...],
    yes: bool,  # noqa: FBT001 - click's call
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Repeat the work of a slot that is done: as a slot of its own, KEY~r..., with the same fire time and interval.

    The next sweep of any replica that knows the job enqueues it.

    Exit code 1 where the slot is not done, or its job is paused: nothing is changed then.
    """
    app, key = _key_of(words, redis)
    if not yes:
        raise Wrong(f"{key} ran already: say --yes if its work shall be repeated")
    site = site_from(app, redis, namespace, own_namespace=parse_key(key).namespace)
    _print(ctx, ask(site, lambda site: orders.rerun(site, key)), as_json=as_json)


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue trigger app:slots nightly", ""),
        ("slotqueue trigger nightly --redis redis://localhost:6379/0", "as its newest slot on record was"),
    ],
)
@click.argument("words", nargs=-1, required=True, metavar="[MODULE:ATTRIBUTE] JOB")
@site_options
@json_option
@click.pass_context
def trigger(
    ctx: click.Context,
    words: tuple[str, ...],
    redis: str | None,
    namespace: str | None,
    as_json: bool,  # noqa: FBT001 - click's call
) -> None:
    """Run a job now, as a slot of its own that never collides with the schedule: NAMESPACE:JOB:INSTANT~t...

    The next sweep of any replica that knows the job enqueues it.

    Exit code 1 where the job is paused, or another slot of it is out and two may not be: nothing is changed then.
    """
    app, rest = split_app(words, redis)
    job = one(rest, "job")
    _print(ctx, ask(site_from(app, redis, namespace), lambda site: orders.trigger(site, job)), as_json=as_json)


def order_facts(order: Order) -> dict[str, object]:
    """An order for programs."""
    return {**asdict(order), "outcome": order.outcome.value, "is_taken": order.is_taken}


def _key_of(words: tuple[str, ...], redis: str | None) -> tuple[str | None, str]:
    app, rest = split_app(words, redis)
    key = canonical(one(rest, "slot key"))
    parse_key(key)
    return app, key


def _print(ctx: click.Context, order: Order, *, as_json: bool) -> None:
    if as_json:
        print_json(order_facts(order))
    else:
        click.echo(printable(order.says))
    if not order.is_taken:
        ctx.exit(FOUND_SOMETHING)
