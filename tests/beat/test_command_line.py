"""The command line over a Celery application that has a beat schedule and no `SlotQueue`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slotqueue.cli import main
from slotqueue.process import about_process
from slotqueue.protocols import Process
from tests.store.stage import Stage

Slotqueue = Callable[..., Result]

PROJ = """
from celery import Celery

app = Celery("proj", broker="{url}", backend="{url}", set_as_current=False)
app.conf.beat_schedule = {{"tidy": {{"task": "work", "schedule": {every}, "options": {{"queue": "slow"}}}}}}


@app.on_after_finalize.connect
def more(sender, **_):
    sender.add_periodic_task(60.0, sender.signature("mail"), name="mail")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("proj", None)


def _say(*words: str) -> Result:
    sys.modules.pop("proj", None)
    return CliRunner().invoke(main, [*words], prog_name="slotqueue", catch_exceptions=False)


def test_check_finds_an_entry_that_goes_to_a_queue_where_no_worker_listens(folder: Path, redis_url: str) -> None:
    (folder / "proj.py").write_text(PROJ.format(url=redis_url, every=60))
    stage = Stage(redis_url)
    about = about_process(worker="celery", queues=["celery"], broker="")
    stage.run(stage.verbs.enlist(Process("w1", about, ("celery:work", "celery:mail"))))
    stage.close()
    checked = _say("check", "proj:app")
    assert checked.exit_code == 1
    said = " ".join(checked.output.split())
    assert "no known worker listens on the queue 'slow' that the job is sent to" in said
    assert "'mail'" not in said


def test_the_fire_times_of_entries_are_shown(folder: Path, redis_url: str) -> None:
    (folder / "proj.py").write_text(PROJ.format(url=redis_url, every=3600))
    shown = _say("next", "proj:app", "tidy", "-n", "2", "--json")
    assert shown.exit_code == 0
    assert shown.output.count(":00:00") >= 2


def test_an_entry_that_cannot_work_is_one_line(folder: Path, redis_url: str) -> None:
    (folder / "proj.py").write_text(PROJ.format(url=redis_url, every=0.1))
    refused = _say("next", "proj:app")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: job 'tidy', schedule: an interval of 0.1 s is below")
    assert len(refused.stderr.splitlines()) == 1
