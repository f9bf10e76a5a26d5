"""The document's files are written out and run as they stand, by a pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_NOT_NEEDED = ("cacheprovider", "asyncio", "hypothesispytest", "randomly", "timeout", "xdist", "xdist.looponfail")
_PLAIN = [word for name in _NOT_NEEDED for word in ("-p", f"no:{name}")]
DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_files_of_the_document_pass(tmp_path: Path) -> None:
    files = re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *_PLAIN, "-W", "error"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tests = sum(text.count("\ndef test_") for name, text in files if name.startswith("test_"))
    assert f"{tests} passed" in done.stdout
