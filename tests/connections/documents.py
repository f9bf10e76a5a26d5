"""What docs/redis.md says, so that it is done as it stands there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slotqueue import SlotQueue

_TEXT = (Path(__file__).parents[2] / "docs" / "redis.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """The code block behind the mark of this name."""
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", _TEXT, re.DOTALL)
    assert found, f"docs/redis.md has no block {name!r}"
    return found[1]


def run(name: str, places: Mapping[str, str]) -> dict[str, Any]:
    """Run a block with real places in place of those it names; returns what it defines."""
    text = block(name)
    for said, real in places.items():
        assert said in text, f"the block {name!r} does not say {said!r}"
        text = text.replace(said, real)
    defined: dict[str, Any] = {}
    exec(compile(text, f"docs/redis.md, {name}", "exec"), defined)
    return defined


async def starts(name: str, places: Mapping[str, str]) -> SlotQueue:
    """Run a block, and see its `slots` get ready; returns them, stopped."""
    slots = run(name, places)["slots"]
    assert isinstance(slots, SlotQueue)
    async with slots, asyncio.timeout(40):
        while not slots.is_ready:  # noqa: ASYNC110 - readiness has no event of its own
            await asyncio.sleep(0.02)
    return slots
