"""The standing crews of the tests of faults: whoever dies, one replica and one worker live on and clean up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.fleet import Fleet
from tests.servers import Server

# Slots of the two jobs fall on different seconds, so that a death strikes one slot only.
JOBS = [
    {"name": "complete", "every": 2, "offset": 0, "on_crash": "complete"},
    {"name": "skip", "every": 2, "offset": 1, "on_crash": "skip"},
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Workers with the guard."""
    yield from _crew(tmp_path_factory.mktemp("guarded"), is_guarded=True)


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Workers without the guard."""
    yield from _crew(tmp_path_factory.mktemp("unguarded"), is_guarded=False)


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Replicas that run the functions themselves."""
    jobs = [{**job, "requeue_after": 1} for job in JOBS]
    with Server() as server:
        folder = tmp_path_factory.mktemp("here")
        fleet = Fleet(server.url, folder, jobs=jobs, is_here=True, lease=1, sweep_every=0.2, grace_ms=1000)
        try:
            fleet.replica("standby", late=0.3)
            yield fleet
        finally:
            fleet.close()
            print(fleet.logs())


def _crew(folder: Path, *, is_guarded: bool) -> Iterator[Fleet]:
    with Server() as server:
        fleet = Fleet(server.url, folder, jobs=JOBS, is_guarded=is_guarded, lease=1, sweep_every=0.2, grace_ms=1000)
        try:
            # The doomed are a little quicker than these two, so that the slots and messages are theirs.
            fleet.worker("survivor", worker={"poll_delay": 0.3})
            fleet.replica("standby", late=0.3)
            yield fleet
        finally:
            fleet.close()
            print(fleet.logs())
