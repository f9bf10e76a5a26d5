"""What the nemesis does: each fault is begun, lasts, and is healed."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tests.proxy import Proxy
from tests.rabbitmq import RabbitMQ
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
    def networks(self) -> Mapping[str, Proxy]: ...

    @property
    def networks_of_redis(self) -> Mapping[str, Proxy]: ...

    @property
    def pair(self) -> Pair: ...

    @property
    def broker(self) -> RabbitMQ | None: ...

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
BROKER_MAKERS: dict[Maker, float] = {}
"""What else there is where the messages are in RabbitMQ."""


def makers_for(scene: Scene) -> dict[Maker, float]:
    """What there is to do, and how likely each is beside the others."""
    return MAKERS | (BROKER_MAKERS if scene.broker else {})


def _kind(maker: Maker) -> Maker:
    MAKERS[maker] = 1.0
    return maker


def _rare(maker: Maker) -> Maker:
    """Decisions are forgotten, so all jobs that shall complete run again: too often, and nothing else happens."""
    MAKERS[maker] = 0.3
    return maker


def _of_broker(maker: Maker) -> Maker:
    BROKER_MAKERS[maker] = 1.0
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


@_kind
def network_cut(chance: random.Random, scene: Scene) -> Fault:
    return _of_network("network cut", (0.2, 4.0), chance, scene, Proxy.refuse)


@_kind
def network_slow(chance: random.Random, scene: Scene) -> Fault:
    delay = chance.uniform(0.05, 0.6)
    return _of_network("network slow", (1.0, 4.0), chance, scene, lambda proxy: proxy.delay(delay))


@_kind
def network_black_hole(chance: random.Random, scene: Scene) -> Fault:
    """Connections stay, and what was swallowed never comes."""
    return _of_network("network a black hole", (0.5, 4.0), chance, scene, Proxy.swallow)


@_kind
def replies_dropped(chance: random.Random, scene: Scene) -> Fault:
    """What was asked is done; nobody hears that it was."""
    return _of_network("replies dropped", (0.2, 2.0), chance, scene, Proxy.drop_replies)


@_kind
def half_closed(chance: random.Random, scene: Scene) -> Fault:
    """The client's direction of every connection is closed, the server's stays open for a while."""
    return _of_network("connections half closed", (0.5, 2.0), chance, scene, Proxy.half_close)


_SPOILS = (Proxy.swallow, Proxy.half_close)
"""After these a connection has lost something, and is of no use any more."""


def _of_network(
    kind: str, seconds: tuple[float, float], chance: random.Random, scene: Scene, break_it: Callable[[Proxy], object]
) -> Fault:
    name = chance.choice(sorted(scene.networks))
    proxy = scene.networks[name]

    def heal() -> None:
        if break_it in _SPOILS:
            proxy.refuse()
        proxy.forward()

    return Fault(kind, name, chance.uniform(*seconds), lambda: break_it(proxy), heal)


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
    return _ordered("Redis read-only", chance, scene, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")


@_kind
def redis_full(chance: random.Random, scene: Scene) -> Fault:
    return _ordered("Redis out of memory", chance, scene, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")


def _ordered(kind: str, chance: random.Random, scene: Scene, order: str, reverse: str) -> Fault:
    ask, seconds = scene.server.ask, chance.uniform(0.5, 4.0)
    return Fault(kind, "redis", seconds, lambda: ask(order), lambda: ask(reverse))


@_rare
def failed_over(chance: random.Random, scene: Scene) -> Fault:
    """The newest writes are lost, and nobody but those who made them knows."""

    def promote() -> None:
        scene.pair.fail_over()
        for network in scene.networks_of_redis.values():
            network.lead_to(scene.server.port)

    return Fault(FAILED_OVER, "redis", chance.uniform(0.5, 3.0), promote, scene.pair.mend)


@_of_broker
def broker_frozen(chance: random.Random, scene: Scene) -> Fault:
    broker = _broker(scene)
    return Fault("RabbitMQ frozen", "broker", chance.uniform(0.5, 5.0), broker.pause, broker.resume)


@_of_broker
def broker_restarted(chance: random.Random, scene: Scene) -> Fault:
    """Killed, and back with what it has confirmed after a moment."""
    broker = _broker(scene)
    return Fault("RabbitMQ killed and restarted", "broker", chance.uniform(0.1, 3.0), broker.kill, broker.start)


@_of_broker
def broker_emptied(_chance: random.Random, scene: Scene) -> Fault:
    """Every message that waited is gone, and so are the queues."""
    broker = _broker(scene)

    def empty() -> None:
        broker.kill()
        broker.drop_data()

    return Fault("RabbitMQ restarted without its data", "broker", 0.5, empty, broker.start)


def _broker(scene: Scene) -> RabbitMQ:
    assert scene.broker is not None
    return scene.broker


if FAKETIME is not None:

    @_kind
    def clock_stepped(chance: random.Random, scene: Scene) -> Fault:
        unit = chance.choice(scene.replicas)
        seconds = chance.choice([-600, -180, -5, 5, 180, 600])
        return Fault("clock of a replica stepped", unit.name, 1.0, lambda: unit.set_clock(seconds))

    @_kind
    def clock_skewed(chance: random.Random, scene: Scene) -> Fault:
        """It gains or loses up to a fifth of each second, and then goes right from where it is."""
        unit = chance.choice(scene.replicas)
        rate = chance.choice([-0.2, -0.05, 0.05, 0.2])
        return Fault(
            "clock of a replica skewed",
            unit.name,
            chance.uniform(2.0, 5.0),
            lambda: unit.skew_clock(rate),
            lambda: unit.skew_clock(0.0),
        )


@contextmanager
def never_mind(say: Callable[[str], None]) -> Iterator[None]:
    """For a fault that hits what is broken already."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the nemesis itself must go on
        say(f"nothing to do there: {error}")
