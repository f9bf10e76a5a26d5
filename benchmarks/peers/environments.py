"""A virtual environment for each peer, in `build/peers`, so that none is held back by what another needs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import ROOT

FOLDER = ROOT / "build" / "peers"
_VERSIONS = "import json; from importlib.metadata import distributions as d; print(json.dumps({x.name.lower().replace('_', '-'): x.version for x in d()}))"  # noqa: E501 - one argument of `python -c`


class NotInstalled(Exception):
    """pip failed; the message ends with what it said last."""


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The folder of an environment's programs; built on first use, and again when its requirements change.

    Raises:
        NotInstalled: pip could not.
    """
    folder = FOLDER / name
    made = folder / "requirements.txt"
    wanted = "\n".join((sys.version, *requirements))
    if not made.exists() or made.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", folder)
        _run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             *requirements)  # fmt: skip
        made.write_text(wanted, encoding="utf-8")
    return folder / "bin"


def versions(bin_folder: Path) -> dict[str, str]:
    """The version of each package there, by its name in small letters with hyphens."""
    found: dict[str, str] = json.loads(_run(bin_folder / "python", "-c", _VERSIONS))
    return found


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NotInstalled(f"{Path(command[0]).name} {command[1]} {command[2]}: {' '.join(last)}")
    return done.stdout
