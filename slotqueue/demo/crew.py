"""All replicas and workers of one run: started, waited for, counted, replaced, ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from slotqueue.demo.interrupts import Interrupts
from slotqueue.demo.ledger import Ledger
from slotqueue.demo.processes import Child, ChildDied
from slotqueue.demo.stage import Stage
from slotqueue.demo.systems import WorkerSystem
from slotqueue.demo.view import View

_READY_SECONDS = 60.0
_READY_SECONDS_EACH = 3.0
"""An interpreter that imports costs most of a second of a core, and the machine may be busy."""
_STOP_SECONDS = 6.0
_LOOK_SECONDS = 0.1


class Crew:
    """The children. Every one that was started is ended, by its id, whatever happens.

    Args:
        system: runs the workers.
        replicas, workers: how many.
    """

    def __init__(self, system: WorkerSystem, replicas: int, workers: int) -> None:
        self.system = system
        self.replicas = replicas
        self.workers = workers
        self._children: list[Child] = []
        self._stage: Stage | None = None

    def start(self, stage: Stage, interrupts: Interrupts) -> None:
        """Start all of them.

        Args:
            stage: the part of any of them; the names are given here.
            interrupts: looked at in between.
        """
        self._stage = stage
        for is_replica, count in ((False, self.workers), (True, self.replicas)):
            for number in range(1, count + 1):
                interrupts.check()
                self._start(number, is_replica=is_replica)

    def wait_until_ready(self, ledger: Ledger, view: View, interrupts: Interrupts) -> None:
        """Wait for every process: a slot confirmed before a worker is known would count as one nobody reports on.

        Raises:
            ChildDied: one of them ended, or is not ready in time.
        """
        seconds = _READY_SECONDS + _READY_SECONDS_EACH * (self.replicas + self.workers)
        deadline = time.monotonic() + seconds
        replicas = workers = 0
        while replicas < self.replicas or workers < self.workers:
            counts = f"{replicas} of {self.replicas} replicas and {workers} of {self.workers} workers"
            view.say(f"ready: {counts} ...")
            interrupts.sleep(_LOOK_SECONDS)
            for child in self.dead():
                raise child.unexpected()
            replicas += sum(fact.what == "Ready" for fact in ledger.news())
            workers = ledger.guarded_workers()
            if time.monotonic() > deadline:
                words = "\n".join(f"{child.name}: {text}" for child in self._children if (text := child.last_words()))
                raise ChildDied(f"only {counts} are ready after {seconds:.0f} s\n{words}")

    def tell_replicas(self, line: str) -> None:
        """Say the start to every replica that lives."""
        for child in self.living(is_replica=True):
            child.say(line)

    def replace(self, child: Child, line: str) -> Child | None:
        """Start another where the last of a kind has died.

        Args:
            child: the dead one.
            line: what replicas are told.
        """
        if self.living(is_replica=child.is_replica):
            return None
        another = self._start((self.replicas if child.is_replica else self.workers) + 1, is_replica=child.is_replica)
        if child.is_replica:
            another.say(line)
        return another

    def living(self, *, is_replica: bool) -> list[Child]:
        """Those of one kind that run."""
        return [child for child in self._children if child.is_replica is is_replica and child.is_alive]

    def first_replicas(self) -> Iterator[Child]:
        """The replicas that were there from the start and still run."""
        first = [child for child in self._children if child.is_replica][: self.replicas]
        return (child for child in first if child.is_alive)

    def dead(self) -> list[Child]:
        """Those that have ended."""
        return [child for child in self._children if not child.is_alive]

    def stop(self) -> None:
        """End all of them: those that do not go in time are killed."""
        deadline = time.monotonic() + _STOP_SECONDS
        for child in self._children:
            child.terminate()
        for child in self._children:
            child.end(deadline)

    def _start(self, number: int, *, is_replica: bool) -> Child:
        if self._stage is None:
            raise RuntimeError("start() comes first")
        name = f"{'replica' if is_replica else 'worker'}-{number}"
        command = self.system.replica if is_replica else self.system.worker
        child = Child(command, replace(self._stage, name=name, is_replica=is_replica))
        self._children.append(child)
        return child
