"""Fixtures for the tests of worker systems. All of them start processes, so none shares the machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.enqueuers.bench import Bench
from tests.enqueuers.systems import ArqSystem
from tests.servers import Server


@pytest.fixture(params=["arq"])
def system(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> Iterator[ArqSystem]:
    """Each worker system in turn; it and the store share one Redis."""
    yield from _arq(redis_url, redis_url, tmp_path)


@pytest.fixture
def arq(redis_url: str, tmp_path: Path) -> Iterator[ArqSystem]:
    """The worker system arq; it and the store share one Redis."""
    yield from _arq(redis_url, redis_url, tmp_path)


@pytest.fixture(params=["arq"])
def system_apart(
    request: pytest.FixtureRequest, redis_url: str, own_server: Server, tmp_path: Path
) -> Iterator[ArqSystem]:
    """Each worker system in turn; the store is `own_server`, and the broker is another."""
    yield from _arq(redis_url, own_server.url, tmp_path)


def _arq(broker_url: str, store_url: str, folder: Path) -> Iterator[ArqSystem]:
    system = ArqSystem(broker_url, store_url, folder)
    try:
        yield system
    finally:
        system.close()
        print(system.logs())


@pytest.fixture
async def bench(system: ArqSystem) -> AsyncIterator[Bench]:
    async with _bench(system) as bench:
        yield bench


@pytest.fixture
async def arq_bench(arq: ArqSystem) -> AsyncIterator[Bench]:
    async with _bench(arq) as bench:
        yield bench


@pytest.fixture
async def bench_apart(system_apart: ArqSystem) -> AsyncIterator[Bench]:
    async with _bench(system_apart) as bench:
        yield bench


@asynccontextmanager
async def _bench(system: ArqSystem) -> AsyncIterator[Bench]:
    bench = Bench(system.store_url, system.broker_url, system.enqueuer())
    try:
        yield bench
    finally:
        await bench.close()
