"""The plugin itself, as the suites of users load it."""

pytest_plugins = ["slotqueue.testing.plugin"]
