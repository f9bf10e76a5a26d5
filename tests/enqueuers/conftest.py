"""Fixtures for the tests of worker systems.

Which systems there are depends on what is installed: `SLOTQUEUE_TEST_CELERY=required` turns a missing Celery into a
failure, and CI a missing RabbitMQ.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.enqueuers.bench import Bench, bench_for
from tests.enqueuers.inprocess_system import InProcessSystem
from tests.enqueuers.systems import System
from tests.servers import Server

if TYPE_CHECKING:
    from tests.enqueuers.arq_system import ArqSystem
    from tests.enqueuers.celery_system import CelerySystem

QUEUES = ["arq", "celery-redis", "celery-rabbitmq"]
_SYSTEMS = ["inprocess", *QUEUES]


@pytest.fixture(params=_SYSTEMS)
def system(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> Iterator[System]:
    """Each worker system in turn; the store and, but for RabbitMQ, the broker share one Redis."""
    with _system(request, redis_url, redis_url, tmp_path) as system:
        yield system


@pytest.fixture
def arq(redis_url: str, tmp_path: Path) -> Iterator[ArqSystem]:
    """The worker system arq; it and the store share one Redis."""
    with _arq(redis_url, redis_url, tmp_path) as system:
        yield system


@pytest.fixture(params=["redis", "rabbitmq"])
def celery_system(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> Iterator[CelerySystem]:
    """Celery on each broker in turn; its results and the store are in one Redis."""
    broker_url = redis_url if request.param == "redis" else request.getfixturevalue("rabbitmq").url
    with _celery(broker_url, redis_url, redis_url, tmp_path) as system:
        yield system


@pytest.fixture
def celery_redis(redis_url: str, tmp_path: Path) -> Iterator[CelerySystem]:
    """Celery on Redis; its results and the store are there as well."""
    with _celery(redis_url, redis_url, redis_url, tmp_path) as system:
        yield system


@pytest.fixture(params=_SYSTEMS)
def system_apart(
    request: pytest.FixtureRequest, redis_url: str, own_server: Server, tmp_path: Path
) -> Iterator[System]:
    """Each worker system in turn; the store is `own_server`, and the broker is another."""
    with _system(request, redis_url, own_server.url, tmp_path) as system:
        yield system


@contextmanager
def _system(request: pytest.FixtureRequest, redis_url: str, store_url: str, folder: Path) -> Iterator[System]:
    kind, _, broker = str(request.param).partition("-")
    if kind == "inprocess":
        if os.environ.get("SLOTQUEUE_TEST_CELERY") == "required":
            pytest.skip("functions of a process are the same with and without Celery")
        with _inprocess(redis_url, store_url, folder) as here:
            yield here
        return
    if importlib.util.find_spec(kind) is None:
        if kind == "celery" and os.environ.get("SLOTQUEUE_TEST_CELERY") == "required":
            pytest.fail("celery is not installed here, and SLOTQUEUE_TEST_CELERY=required", pytrace=False)
        pytest.skip(f"{kind} is not installed here")
    if kind == "arq":
        with _arq(redis_url, store_url, folder) as system:
            yield system
        return
    broker_url = redis_url if broker == "redis" else request.getfixturevalue("rabbitmq").url
    with _celery(broker_url, redis_url, store_url, folder) as celery:
        yield celery


@contextmanager
def _inprocess(effects_url: str, store_url: str, folder: Path) -> Iterator[InProcessSystem]:
    system = InProcessSystem(effects_url, store_url, folder)
    try:
        yield system
    finally:
        system.close()
        print(system.logs())


@contextmanager
def _arq(broker_url: str, store_url: str, folder: Path) -> Iterator[ArqSystem]:
    from tests.enqueuers.arq_system import ArqSystem

    system = ArqSystem(broker_url, store_url, folder)
    try:
        yield system
    finally:
        system.close()
        print(system.logs())


@contextmanager
def _celery(broker_url: str, effects_url: str, store_url: str, folder: Path) -> Iterator[CelerySystem]:
    from tests.enqueuers.celery_system import CelerySystem

    system = CelerySystem(broker_url, effects_url, store_url, folder)
    try:
        yield system
    finally:
        system.close()
        print(system.logs())


@pytest.fixture
async def celery_bench(celery_system: CelerySystem) -> AsyncIterator[Bench]:
    async with bench_for(celery_system) as bench:
        yield bench


@pytest.fixture
async def celery_redis_bench(celery_redis: CelerySystem) -> AsyncIterator[Bench]:
    async with bench_for(celery_redis) as bench:
        yield bench


@pytest.fixture
async def bench(system: System) -> AsyncIterator[Bench]:
    async with bench_for(system) as bench:
        yield bench


@pytest.fixture
async def arq_bench(arq: ArqSystem) -> AsyncIterator[Bench]:
    async with bench_for(arq) as bench:
        yield bench


@pytest.fixture
async def bench_apart(system_apart: System) -> AsyncIterator[Bench]:
    async with bench_for(system_apart) as bench:
        yield bench
