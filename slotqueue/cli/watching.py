"""`--watch`: ask and print again and again, where a table is live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from slotqueue.cli.failing import Wrong
from slotqueue.ops.site import Site
from slotqueue.words import instant

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def watch_option(verb: F) -> F:
    """Take the wish to look again every so many seconds."""
    return click.option(
        "--watch",
        type=click.FloatRange(0.2, 3600),
        metavar="SECONDS",
        help="Ask again every SECONDS, until Ctrl-C.",
    )(verb)


def watching(
    site: Site,
    question: Callable[[Site], Awaitable[T]],
    answer: Callable[[T], None],
    *,
    watch: float | None,
    as_json: bool,
) -> None:
    """Ask a site and print the answer; with `watch` again and again, a terminal cleared before each.

    Raises:
        Wrong: JSON cannot be watched.
    """
    if watch is not None and as_json:
        raise Wrong("--watch is for people and --json for programs: choose one of them")

    async def asking() -> None:
        try:
            while True:
                found = await question(site)
                if watch is not None:
                    click.clear()
                    click.echo(f"every {watch:g} s, at {instant(datetime.now(UTC).replace(microsecond=0))}")
                answer(found)
                if watch is None:
                    return
                await asyncio.sleep(watch)
        finally:
            await site.close()

    asyncio.run(asking())
