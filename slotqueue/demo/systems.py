"""The worker systems that the demo can show: how a worker is started, and what it leaves behind in Redis."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass

from slotqueue.errors import MissingExtra


@dataclass(frozen=True, slots=True)
class WorkerSystem:
    """One worker system.

    Args:
        name: as the command line and its package call it.
        title: as people call it.
        module: the application; `--show-code` prints it.
        worker: the command of one worker.
        queue_of: the name of its queue in a namespace.
        keys_of: the keys that it keeps in Redis about one queue and these messages.
    """

    name: str
    title: str
    module: str
    worker: tuple[str, ...]
    queue_of: Callable[[str], str]
    keys_of: Callable[[str, list[str]], list[str]]

    @property
    def replica(self) -> tuple[str, ...]:
        """The command of one replica."""
        return (sys.executable, "-m", "slotqueue.demo.replica", self.module)

    @property
    def is_installed(self) -> bool:
        """Whether it can be imported."""
        return importlib.util.find_spec(self.name) is not None

    def check(self) -> None:
        """See that it is installed.

        Raises:
            MissingExtra: it is not.
        """
        if self.is_installed:
            return
        # Their newest releases do not fit side by side, and pip would break what is there: `all` names two that do.
        extra = "all" if any(system.is_installed for system in SYSTEMS.values()) else self.name
        raise MissingExtra(f"{self.name} is not installed; install it with: pip install 'slotqueue[{extra}]'")

    def source(self) -> str:
        """Read the application's source.

        Raises:
            FileNotFoundError: it is installed without sources.
        """
        spec = importlib.util.find_spec(self.module)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(self.module)
        text: str | None = spec.loader.get_source(self.module)  # type: ignore[attr-defined]
        if text is None:
            raise FileNotFoundError(self.module)
        return text


def _arq_keys(queue: str, messages: list[str]) -> list[str]:
    kinds = ("job", "result", "retry", "in-progress")
    return [queue, f"{queue}:health-check", *(f"arq:{kind}:{message}" for message in messages for kind in kinds)]


def _celery_keys(queue: str, _: list[str]) -> list[str]:
    """All that kombu keeps under the application's prefix; there is no result backend."""
    words = (
        "celery",
        "_kombu.binding.celery",
        "_kombu.binding_permanent.celery",
        "unacked",
        "unacked_index",
        "unacked_mutex",
    )
    return [f"{queue}:{word}" for word in words]


ARQ = WorkerSystem(
    name="arq",
    title="arq",
    module="slotqueue.demo.app_arq",
    worker=(sys.executable, "-m", "arq", "slotqueue.demo.app_arq.WorkerSettings"),
    queue_of=lambda namespace: f"arq:queue:{namespace}",
    keys_of=_arq_keys,
)

CELERY = WorkerSystem(
    name="celery",
    title="Celery",
    module="slotqueue.demo.app_celery",
    worker=(
        *(sys.executable, "-m", "celery", "-A", "slotqueue.demo.app_celery", "worker", "--loglevel", "INFO"),
        *("--pool", "threads", "--concurrency", "4", "--without-gossip", "--without-mingle", "--without-heartbeat"),
    ),
    queue_of=lambda namespace: f"celery:{namespace}",
    keys_of=_celery_keys,
)

SYSTEMS = {system.name: system for system in (ARQ, CELERY)}


def system_named(name: str | None) -> WorkerSystem:
    """Return the worker system of a name; without one the first that is installed."""
    if name is not None:
        return SYSTEMS[name]
    return next((system for system in SYSTEMS.values() if system.is_installed), ARQ)
