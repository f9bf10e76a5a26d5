"""Fixtures of the store's tests.

- `stage`: the shared server, empty but for one replica, with the verbs at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.stage import Stage


@pytest.fixture
def stage(redis_url: str) -> Iterator[Stage]:
    stage = Stage(redis_url)
    yield stage
    stage.close()
