"""Fixtures of the acceptance tests."""

import importlib.util

if importlib.util.find_spec("arq") is not None:  # the example for Celery is run where arq cannot be
    from tests.fleet.fixtures import apps, hand, new_fleet

    __all__ = ["apps", "hand", "new_fleet"]
