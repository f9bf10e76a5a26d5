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
        name: as the command line and people call it.
        module: the application; `--show-code` prints it.
        worker: the command of one worker.
        queue_of: the name of its queue in a namespace.
        keys_of: the keys that it keeps in Redis about one queue and these messages.
    """

    name: str
    module: str
    worker: tuple[str, ...]
    queue_of: Callable[[str], str]
    keys_of: Callable[[str, list[str]], list[str]]

    @property
    def replica(self) -> tuple[str, ...]:
        """The command of one replica."""
        return (sys.executable, "-m", "slotqueue.demo.replica", self.module)

    def check(self) -> None:
        """See that it is installed.

        Raises:
            MissingExtra: it is not.
        """
        if importlib.util.find_spec(self.name) is None:
            raise MissingExtra(f"{self.name} is not installed; install it with: pip install 'slotqueue[{self.name}]'")

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


ARQ = WorkerSystem(
    name="arq",
    module="slotqueue.demo.app_arq",
    worker=(sys.executable, "-m", "arq", "slotqueue.demo.app_arq.WorkerSettings"),
    queue_of=lambda namespace: f"arq:queue:{namespace}",
    keys_of=_arq_keys,
)
