"""Fixtures of the tests with real beats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.beat.process import Fleet
from tests.servers import Server


@pytest.fixture
def fleet(redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(redis_url, tmp_path)
    try:
        yield fleet
    finally:
        fleet.close()


@pytest.fixture
def own_fleet(own_server: Server, tmp_path: Path) -> Iterator[Fleet]:
    """Beats on a server that the test may stop."""
    fleet = Fleet(own_server.url, tmp_path)
    try:
        yield fleet
    finally:
        own_server.resume()
        fleet.close()
