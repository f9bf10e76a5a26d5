"""Fixtures of the tests of races."""

from tests.fleet.fixtures import hand, new_fleet

__all__ = ["hand", "new_fleet"]
