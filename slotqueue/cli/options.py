"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from slotqueue.slots import DEFAULT_NAMESPACE

F = TypeVar("F", bound=Callable[..., Any])

REDIS_VARIABLE = "SLOTQUEUE_REDIS"
NAMESPACE_VARIABLE = "SLOTQUEUE_NAMESPACE"
_LEVELS = ["debug", "info", "warning", "error", "critical"]


def app_argument(verb: F) -> F:
    """Take the application; None where it is left to the environment."""
    return click.argument("app", required=False, metavar="[MODULE:ATTRIBUTE]")(verb)


def site_options(verb: F) -> F:
    """Take a Redis and a namespace, for verbs that need no code."""
    namespace = click.option(
        "--namespace",
        metavar="NAME",
        help=f"What every key begins with.  [default: the application's; else {NAMESPACE_VARIABLE}, "
        f"or {DEFAULT_NAMESPACE}]",
    )
    redis = click.option(
        "--redis",
        metavar="URL",
        help="The coordinating Redis, where no application is named or another Redis is meant.  "
        f"[default: the application's; else {REDIS_VARIABLE}]",
    )
    return redis(namespace(verb))


def json_option(verb: F) -> F:
    """Take the wish for JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(verb)


def log_option(default: str) -> Callable[[F], F]:
    """Take the level from which facts are logged to stderr."""
    return click.option(
        "--log-level",
        type=click.Choice(_LEVELS, case_sensitive=False),
        default=default,
        show_default=True,
        help="Log facts of this level and above, one line each, to stderr.",
    )
