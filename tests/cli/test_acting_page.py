"""Every command and the example of docs/acting.md is run as it stands, against a Redis in which it makes sense."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slotqueue.answers import Offer
from slotqueue.slots import Slot, key_at
from tests.cli.conftest import Slotqueue
from tests.store.registering import hourly_job, register
from tests.store.stage import HOUR, NAMESPACE, Stage

PAGE = Path(__file__).parents[2] / "docs" / "acting.md"
BLOCK = re.compile(r"<!-- commands -->\n```bash\n(.*?)```", re.DOTALL)


def commands() -> list[str]:
    return [line for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")) for line in block.splitlines()]


@pytest.fixture
def namespace(stage: Stage) -> Stage:
    """A dead and a done slot of `nightly`, `hourly` beside it, and a job that nobody has known for an hour."""
    jobs = [hourly_job(name) for name in ("nightly", "hourly", "old_report")]
    register(stage, *jobs)
    entry = str(stage.redis.hget("ran:jobs", "old_report")).split(":")
    entry[2] = str(stage.now() - HOUR)
    stage.redis.hset("ran:jobs", "old_report", ":".join(entry))
    slots = [
        Slot(key_at(NAMESPACE, "nightly", at), "nightly", at, at)
        for at in (datetime(2026, 10, day, 3, tzinfo=UTC) for day in (1, 2))
    ]
    stage.claim(*(Offer(jobs[0], slot) for slot in slots))
    stage.guard(jobs[0])
    done, dead = (stage.began(stage.slip(jobs[0], slot)) for slot in slots)
    stage.finish(done)
    stage.fail(dead)
    return stage


def test_the_page_has_every_verb_of_an_operator() -> None:
    verbs = {shlex.split(line)[1] for line in commands()}
    assert verbs == {"retry", "rerun", "trigger", "dead", "backfill", "pause", "resume", "forget"}


def test_every_command_does_what_it_is_there_for(slotqueue: Slotqueue, namespace: Stage, redis_url: str) -> None:
    for line in commands():
        result = slotqueue(*shlex.split(line)[1:], env={"SLOTQUEUE_REDIS": redis_url})
        assert result.exit_code == 0, f"{line}: {result.output}"
    day = [f"ran:hourly:2026-09-01T{hour:02}:00" for hour in range(24)]
    assert {namespace.state(key) for key in day} == {"claimed"}


def test_the_example_runs(namespace: Stage, redis_url: str, tmp_path: Path) -> None:
    found = re.search(r"<!-- example -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    (tmp_path / "example.py").write_text(found[1].replace("redis://localhost:6379/0", redis_url), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Counter({'claimed': 24})"
