"""What the nemesis does: each fault is begun, lasts, and is healed."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tests.proxy import Proxy
from tests.servers import Server
from tests.soak.crew import FAKETIME, Unit
from tests.soak.pair import Pair

EMPTIED = "Redis restarted without its data"
FAILED_OVER = "lagging replica of Redis promoted"
LOSES_DATA = (EMPTIED, FAILED_OVER)


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that was there.

    Args:
        kind: in words.
        victim: which process, network or server.
        start, end: monotonic seconds.
    """

    kind: str
    victim: str
    start: float
    end: float


class Scene(Protocol):
    """What there is to break."""

    @property
    def replicas(self) -> Sequence[Unit]: ...

    @property
    def workers(self) -> Sequence[Unit]: ...

    @property
    def networks(self) -> dict[str, Proxy]: ...

    @property
    def pair(self) -> Pair: ...

    @property
    def server(self) -> Server: ...


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that is chosen and not struck yet: `begin` breaks, `heal` mends, after `seconds`."""

    kind: str
    victim: str
    seconds: float
    begin: Callable[[], object]
    heal: Callable[[], object] = lambda: None


Maker = Callable[[random.Random, Scene], Fault]
MAKERS: dict[Maker, float] = {}
"""What makes faults, and how likely each is beside the others."""


def _kind(maker: Maker) -> Maker:
    MAKERS[maker] = 1.0
    return maker


def _rare(maker: Maker) -> Maker:
    """Decisions are forgotten, so all jobs that shall complete run again: too often, and nothing else happens."""
    MAKERS[maker] = 0.3
    return maker


def _unit(chance: random.Random, scene: Scene) -> Unit:
    return chance.choice([*scene.replicas, *scene.workers])


@_kind
def killed(chance: random.Random, scene: Scene) -> Fault:
    unit = _unit(chance, scene)
    return Fault(f"{unit.role} killed", unit.name, 0.5, lambda: unit.signal(signal.SIGKILL))


@_kind
def stopped_and_continued(chance: random.Random, scene: Scene) -> Fault:
    """For less or more than a lease."""
    unit, seconds = _unit(chance, scene), chance.uniform(0.5, 5.0)
    return Fault(
        f"{unit.role} frozen",
        unit.name,
        seconds,
        lambda: unit.signal(signal.SIGSTOP),
        lambda: unit.signal(signal.SIGCONT),
    )


@_kind
def terminated(chance: random.Random, scene: Scene) -> Fault:
    unit = _unit(chance, scene)
    return Fault(f"{unit.role} terminated", unit.name, 1.0, unit.terminate)


@_kind
def deployed(chance: random.Random, scene: Scene) -> Fault:
    """The other version of the service takes a replica's place, beside the ones that stay."""
    unit = chance.choice(scene.replicas)

    def deploy() -> None:
        unit.deploy(3 - unit.orders.version)
        unit.terminate()

    return Fault("replica deployed", unit.name, 1.0, deploy)


def _network(chance: random.Random, scene: Scene) -> tuple[str, Proxy]:
    name = chance.choice(sorted(scene.networks))
    return name, scene.networks[name]


@_kind
def network_cut(chance: random.Random, scene: Scene) -> Fault:
    name, proxy = _network(chance, scene)
    return Fault("network cut", name, chance.uniform(0.2, 4.0), proxy.refuse, proxy.forward)


@_kind
def network_slow(chance: random.Random, scene: Scene) -> Fault:
    name, proxy = _network(chance, scene)
    delay = chance.uniform(0.05, 0.6)
    return Fault("network slow", name, chance.uniform(1.0, 4.0), lambda: proxy.delay(delay), proxy.forward)


@_kind
def network_black_hole(chance: random.Random, scene: Scene) -> Fault:
    name, proxy = _network(chance, scene)

    def heal() -> None:
        proxy.refuse()  # what was swallowed never comes
        proxy.forward()

    return Fault("network a black hole", name, chance.uniform(0.5, 4.0), proxy.swallow, heal)


@_kind
def replies_dropped(chance: random.Random, scene: Scene) -> Fault:
    """What was asked is done; nobody hears that it was."""
    name, proxy = _network(chance, scene)
    return Fault("replies dropped", name, chance.uniform(0.2, 2.0), proxy.drop_replies, proxy.forward)


@_kind
def half_closed(chance: random.Random, scene: Scene) -> Fault:
    """The client's direction of every connection is closed, the server's stays open for a while."""
    name, proxy = _network(chance, scene)

    def heal() -> None:
        proxy.refuse()
        proxy.forward()

    return Fault("connections half closed", name, chance.uniform(0.5, 2.0), proxy.half_close, heal)


@_kind
def redis_frozen(chance: random.Random, scene: Scene) -> Fault:
    return Fault("Redis frozen", "redis", chance.uniform(0.5, 5.0), scene.server.pause, scene.server.resume)


@_kind
def redis_restarted(chance: random.Random, scene: Scene) -> Fault:
    """Killed, and back with its data after a moment."""
    return Fault("Redis killed and restarted", "redis", chance.uniform(0.1, 3.0), scene.server.kill, scene.server.start)


@_rare
def redis_emptied(_chance: random.Random, scene: Scene) -> Fault:
    return Fault(EMPTIED, "redis", 0.5, lambda: scene.server.restart(keep_data=False))


@_kind
def redis_read_only(chance: random.Random, scene: Scene) -> Fault:
    """A replica of a server that is not there: it answers reads and refuses writes."""
    ask = scene.server.ask
    return Fault(
        "Redis read-only",
        "redis",
        chance.uniform(0.5, 4.0),
        lambda: ask("REPLICAOF 127.0.0.1 1"),
        lambda: ask("REPLICAOF NO ONE"),
    )


@_kind
def redis_full(chance: random.Random, scene: Scene) -> Fault:
    ask = scene.server.ask
    return Fault(
        "Redis out of memory",
        "redis",
        chance.uniform(0.5, 3.0),
        lambda: ask("CONFIG SET maxmemory 1"),
        lambda: ask("CONFIG SET maxmemory 0"),
    )


@_rare
def failed_over(chance: random.Random, scene: Scene) -> Fault:
    """The newest writes are lost, and nobody but those who made them knows."""

    def promote() -> None:
        scene.pair.fail_over()
        for network in scene.networks.values():
            network.lead_to(scene.server.port)

    return Fault(FAILED_OVER, "redis", chance.uniform(0.5, 3.0), promote, scene.pair.mend)


if FAKETIME is not None:

    @_kind
    def clock_stepped(chance: random.Random, scene: Scene) -> Fault:
        unit = chance.choice(scene.replicas)
        seconds = chance.choice([-600, -180, -5, 5, 180, 600])
        return Fault("clock of a replica stepped", unit.name, 1.0, lambda: unit.set_clock(seconds))


@contextmanager
def never_mind(say: Callable[[str], None]) -> Iterator[None]:
    """For a fault that hits what is broken already."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the nemesis itself must go on
        say(f"nothing to do there: {error}")
