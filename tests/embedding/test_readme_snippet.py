"""The README's function of the process runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from slotqueue.slots import SlotState
from slotqueue.testing import run

README = Path(__file__).parents[2] / "README.md"


async def test_the_readmes_function_runs_for_a_slot(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"<!-- here -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    module: dict[str, Any] = {}
    exec(found[1], module)
    account = await run(module["slots"], "refresh_cache")
    assert account.state is SlotState.DONE
    assert "refreshing for 20" in capsys.readouterr().out
