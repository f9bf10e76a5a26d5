"""Fixtures of the acceptance tests."""

from tests.fleet.fixtures import apps, hand, new_fleet

__all__ = ["apps", "hand", "new_fleet"]
