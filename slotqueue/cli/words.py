"""The words of a command line: an application first, perhaps, and then what the verb is about."""

from __future__ import annotations

import re

import click

from slotqueue.cli.failing import Wrong
from slotqueue.cli.where import is_place_known
from slotqueue.ops.site import canonical
from slotqueue.slots import is_slot_key

_APP_FORM = re.compile(r"[\w./]+:[\w.]+")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/(s|min|m|h|d))?", re.ASCII)


def split_app(words: tuple[str, ...], redis: str | None) -> tuple[str | None, list[str]]:
    """Tell the application from the rest: MODULE:ATTRIBUTE, where it stands first and is no slot key.

    A single word is an application only where nothing else says where to look.
    """
    first, *rest = words or ("",)
    is_app = _APP_FORM.fullmatch(first) and not is_slot_key(canonical(first))
    if is_app and (rest or not is_place_known(redis)):
        return first, rest
    return None, list(words)


def one(words: list[str], what: str) -> str:
    """Take the one word that is left.

    Raises:
        Wrong: there is none, or more than one.
    """
    if len(words) != 1:
        raise Wrong(f"name one {what}" + ("; one with blanks needs quotes" if words else ""))
    return words[0]


class Rate(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """How many a second: 10/s, 600/min, 100/h."""

    name = "rate"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it, or fail with what one looks like."""
        if isinstance(value, float):
            return value
        found = _RATE.fullmatch(value)
        if found is None or not float(found[1]):
            self.fail(f"{value!r} is no rate; one looks like 10/s, 600/min or 100/h", param, ctx)
        return float(found[1]) / _SECONDS[found[2] or "s"]
