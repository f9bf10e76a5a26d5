"""Whose namespace it is: the first application that says its name keeps it, and another one is refused."""

from __future__ import annotations

from slotqueue.errors import ConfigurationError, WrongStore
from slotqueue.store.commands import Commands

_SAID_AGAIN_WITH = frozenset({"register", "enlist"})
"""What every replica and worker sends now and then: the name lives on with it."""
_LONGEST = 200


class Ownership:
    """Knows whether this process may use its namespace.

    Args:
        verbs: of the namespace.
        app: the application's name, 1 to 200 printable characters; None where it does not say: then nothing is asked.

    Raises:
        ConfigurationError: a name that cannot be.
    """

    def __init__(self, verbs: Commands, app: str | None) -> None:
        is_name = isinstance(app, str) and 0 < len(app) <= _LONGEST and app.isprintable()
        if app is not None and not is_name:
            raise ConfigurationError(f"{app!r} is no name of 1 to {_LONGEST} printable characters", argument="app")
        self.app = app
        self.question = verbs.own(app or "")
        self._namespace = verbs.keys.namespace
        self._is_sure = False

    def is_due(self, script: str) -> bool:
        """Whether to ask before this script."""
        return self.app is not None and (not self._is_sure or script in _SAID_AGAIN_WITH)

    def judge(self, where: str, owner: str) -> None:
        """Take in whose the namespace is.

        Raises:
            WrongStore: another application's; asked again, it may be free one day.
        """
        self._is_sure = owner == self.app
        if not self._is_sure:
            raise WrongStore(
                f"Redis at {where}: the namespace {self._namespace!r} belongs to the app {owner!r}, and this is "
                f"{self.app!r}: give it a namespace of its own"
            )
