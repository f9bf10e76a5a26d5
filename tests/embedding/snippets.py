"""The snippets of the how-to pages, as files: what follows `<!-- app.py -->` in a page is the file `app.py`."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_REDIS = "redis://localhost:6379/0"


def write_snippets(page: str, folder: Path, redis_url: str) -> list[str]:
    """Write the files of a page, with another Redis; returns their names."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"<!-- (\S+\.py) -->\n```python\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("```python"), "each snippet has a name, and so is run"
    for name, code in found:
        (folder / name).write_text(code.replace(_REDIS, redis_url), encoding="utf-8")
    return [name for name, _ in found]
