"""Where a verb looks, from what the command line and the environment say; and how it asks there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from slotqueue.cli.failing import Wrong
from slotqueue.cli.loading import APP_VARIABLE, load_app
from slotqueue.cli.options import NAMESPACE_VARIABLE, REDIS_VARIABLE
from slotqueue.ops.site import Site
from slotqueue.slots import DEFAULT_NAMESPACE, check_namespace
from slotqueue.store import AsyncStore

T = TypeVar("T")


def site_from(app: str | None, redis: str | None, namespace: str | None, *, own_namespace: str | None = None) -> Site:
    """Find out where to look.

    What the command line says goes before the environment. An application knows its schedules, so it goes before a
    bare URL of the environment.

    Args:
        app: MODULE:ATTRIBUTE from the command line.
        redis: URL from the command line.
        namespace: from the command line.
        own_namespace: of the key that is asked for, where nothing else says one.

    Raises:
        Wrong: nothing says where to look, or the application cannot be loaded.
        ConfigurationError: a URL or a namespace that cannot be.
    """
    if app is not None or (redis is None and os.environ.get(APP_VARIABLE)):
        found = load_app(app)
        if redis is None and namespace is None:
            return Site.of(found)
        name = namespace or found.namespace
        check_namespace(name)
        return Site(AsyncStore(redis or found.redis, name), name, found)
    url = redis or os.environ.get(REDIS_VARIABLE)
    if not url:
        raise Wrong(
            f"say where to look: MODULE:ATTRIBUTE (or {APP_VARIABLE}), or --redis URL (or {REDIS_VARIABLE}), "
            "such as --redis redis://localhost:6379/0"
        )
    return Site.at(url, namespace or os.environ.get(NAMESPACE_VARIABLE) or own_namespace or DEFAULT_NAMESPACE)


def is_place_known(redis: str | None) -> bool:
    """Whether anything but the application argument says where to look."""
    return redis is not None or bool(os.environ.get(APP_VARIABLE) or os.environ.get(REDIS_VARIABLE))


def ask(site: Site, question: Callable[[Site], Awaitable[T]]) -> T:
    """Ask a site and close it."""

    async def asking() -> T:
        try:
            return await question(site)
        finally:
            await site.close()

    return asyncio.run(asking())
