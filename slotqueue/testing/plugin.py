"""The pytest plugin: `pytest_plugins = ["slotqueue.testing.plugin"]` in the conftest of the tests that want it.

It is no entry point on purpose: a suite that does not name it pays nothing for it.
"""

from __future__ import annotations

import pytest

from slotqueue.testing.server import empty_database


@pytest.fixture
def slotqueue_redis() -> str:
    """The URL of a real Valkey server of this test process, empty at the start of each test."""
    return empty_database(0)
