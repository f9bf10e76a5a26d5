"""One soak: a service of real processes, a nemesis with a seed, and the verdict afterwards."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Self

from tests.proxy import Proxy
from tests.rabbitmq import RabbitMQ
from tests.servers import Server
from tests.soak import ledger
from tests.soak.accounts import read_accounts
from tests.soak.aftermath import Aftermath
from tests.soak.checker import Evidence, Figures, Violation, check, figures
from tests.soak.crew import Unit
from tests.soak.faults import Fault, Struck, makers_for, never_mind
from tests.soak.orders import Orders
from tests.soak.pair import Pair

READY_WITHIN_S = 180.0
_TOGETHER = 0.2
"""The chance that a fault comes while another one is there."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Args:
        seed: of everything that is chosen.
        seconds: how long the nemesis works.
        worker: "arq" or "celery".
        broker: "redis", the coordinating one, or "rabbitmq", for Celery.
        replicas_to_ack: how many replicas of Redis must have a claim before its message goes out.
        bugs: to plant in slotqueue: see `tests.soak.bugs`.
        every_s: from the end of a fault to the next one, on average.
        settle_s: how long slots may take to end afterwards.
        kinds: only faults by these makers of `tests.soak.faults`; all where empty.
    """

    seed: int = 1
    seconds: float = 120.0
    worker: str = "arq"
    broker: str = "redis"
    replicas_to_ack: int = 0
    bugs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    every_s: float = 2.0
    settle_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went."""

    violations: list[Violation]
    figures: Figures


class Soak:
    """A service under soak; a context manager.

    Args:
        plan: what to do.
        folder: for the ledger and the logs.
        say: takes progress, a line each.
    """

    def __init__(self, plan: Plan, folder: Path, say: Say = print) -> None:
        self.plan = plan
        self.folder = folder
        self._say = say
        self._stack = ExitStack()
        self._faults: list[Struck] = []
        self._chance = random.Random(plan.seed)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.pair = stack.enter_context(Pair())
            self.broker = stack.enter_context(RabbitMQ()) if self.plan.broker == "rabbitmq" else None
            self.networks_of_redis = {
                role: stack.enter_context(Proxy(self.server.port)) for role in ("replica", "worker")
            }
            self.networks_of_broker = {
                role: stack.enter_context(Proxy(self.broker.port)) for role in ("replica", "worker") if self.broker
            }
            self.replicas = [self._unit("replica", i) for i in range(3)]
            self.workers = [self._unit("worker", i) for i in range(2)]
            for unit in self.units:
                stack.callback(unit.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    @property
    def server(self) -> Server:
        """The primary of the moment."""
        return self.pair.primary

    @property
    def networks(self) -> Mapping[str, Proxy]:
        """All of them, by a name for people."""
        return {f"{role}s' way to Redis": proxy for role, proxy in self.networks_of_redis.items()} | {
            f"{role}s' way to RabbitMQ": proxy for role, proxy in self.networks_of_broker.items()
        }

    @property
    def units(self) -> list[Unit]:
        """All processes; workers first, since they are rolled out first."""
        return [*self.workers, *self.replicas]

    def run(self) -> Outcome:
        """Do all of it; takes the plan's seconds, the start, and what it needs to settle."""
        for unit in self.workers:
            unit.start()
        self._wait(lambda: self._count("ran:workers") >= len(self.workers), READY_WITHIN_S, "the workers are there")
        born = time.time()
        for unit in self.replicas:
            unit.start()
        self._wait(lambda: self._count("ran:replicas") >= len(self.replicas), READY_WITHIN_S, "the replicas tick")
        start = time.time() + 1.0
        self._break_things(self.plan.seconds)
        end = time.time()
        path = self.folder / "ledger"
        aftermath = Aftermath(self.server.url, path, start, end, self._faults)
        dues = asyncio.run(aftermath.settled(self.plan.settle_s, self._tend, self._say))
        for unit in self.units:
            unit.close()
        accounts = asyncio.run(read_accounts(self.server.url, born))
        evidence = Evidence(ledger.read(path), self._faults, dues, accounts)
        return Outcome(check(evidence), figures(evidence))

    # ---- the nemesis

    def _break_things(self, seconds: float) -> None:
        """Strike and heal until the time is over; everything is healed at the end."""
        until, calm_until = monotonic() + seconds, monotonic() + self._pause()
        struck: list[tuple[Fault, float]] = []
        while monotonic() < until:
            self._tend()
            struck = [each for each in struck if not self._is_healed(*each)]
            is_time = monotonic() > calm_until and (not struck or self._chance.random() < _TOGETHER)
            if is_time:
                fault = self._choose()
                if not any(each.victim == fault.victim for each, _ in struck):
                    self._strike(fault)
                    struck.append((fault, monotonic()))
                calm_until = monotonic() + self._pause()
            time.sleep(0.05)
        for fault, since in struck:
            self._heal(fault, since)

    def _pause(self) -> float:
        return self._chance.uniform(0.5, 1.5) * self.plan.every_s

    def _choose(self) -> Fault:
        wanted = self.plan.kinds
        kinds = {maker: weight for maker, weight in makers_for(self).items() if not wanted or maker.__name__ in wanted}
        (maker,) = self._chance.choices(list(kinds), list(kinds.values()))
        return maker(self._chance, self)

    def _strike(self, fault: Fault) -> None:
        self._say(f"{fault.kind}: {fault.victim}, {fault.seconds:.1f} s")
        with never_mind(self._say):
            fault.begin()

    def _is_healed(self, fault: Fault, since: float) -> bool:
        if monotonic() < since + fault.seconds:
            return False
        self._heal(fault, since)
        return True

    def _heal(self, fault: Fault, since: float) -> None:
        with never_mind(self._say):
            fault.heal()
        self._faults.append(Struck(fault.kind, fault.victim, since, monotonic()))

    def _tend(self) -> None:
        for unit in self.units:
            unit.tend()

    # ---- before and after

    def _unit(self, role: str, number: int) -> Unit:
        url = self.networks_of_redis[role].url
        orders = Orders(
            name=f"{role}-{number + 1}",
            url=url,
            broker_url=self.broker.url_at(self.networks_of_broker[role].port) if self.broker else url,
            ledger=str(self.folder / "ledger"),
            worker=self.plan.worker,
            replicas_to_ack=self.plan.replicas_to_ack,
            bugs=self.plan.bugs,
        )
        return Unit(orders, role, self.folder)

    def _count(self, key: str) -> int:
        return int(self.server.ask(f"HLEN {key}"))

    def _wait(self, what: Callable[[], bool], seconds: float, why: str) -> None:
        until = monotonic() + seconds
        while not what():
            self._tend()
            if monotonic() > until:
                raise TimeoutError(f"not within {seconds:.0f} s: {why}; see the logs in {self.folder}")
            time.sleep(0.05)
