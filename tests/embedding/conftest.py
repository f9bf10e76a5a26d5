"""Servers for the tests of embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.embedding.serving import Serving
from tests.embedding.snippets import write_snippets

Serve = Callable[..., Serving]


@pytest.fixture
def serve(redis_url: str, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server with the snippets of a page; it ends with the test."""
    started: list[Serving] = []

    def start(page: str, *command: str) -> Serving:
        write_snippets(page, tmp_path, redis_url)
        started.append(Serving(command, tmp_path, redis_url))
        return started[-1]

    yield start
    for each in started:
        each.close()
