"""The how-to for django-celery-beat, run as it stands in the docs, with the real package on a database of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
_BEFORE = """
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_celery_beat"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    CELERY_BROKER_URL="redis://127.0.0.1:1/0",
    CELERY_RESULT_BACKEND="redis://127.0.0.1:1/0",
    CELERY_SLOTQUEUE_NAMESPACE="shop",
)
django.setup()

from celery import Celery
from django.core.management import call_command
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

app = Celery("proj")
app.config_from_object("django.conf:settings", namespace="CELERY")
call_command("migrate", verbosity=0)
minutely = IntervalSchedule.objects.create(every=1, period="minutes")
nightly = CrontabSchedule.objects.create(minute="30", hour="2", timezone="Europe/Berlin")
PeriodicTask.objects.create(
    name="mail", task="proj.mail", interval=minutely, args="[1]", kwargs='{"to": "all"}', queue="slow",
    expire_seconds=20,
)
PeriodicTask.objects.create(name="report", task="proj.report", crontab=nightly, headers='{"tenant": "a"}')
PeriodicTask.objects.create(name="off", task="proj.off", interval=minutely, enabled=False)
PeriodicTask.objects.create(name="once", task="proj.once", interval=minutely, one_off=True)
"""
_AFTER = """
scheduler = TableScheduler(app)
print(json.dumps({
    "namespace": scheduler.settings.namespace,
    "jobs": {
        name: [job.task, str(job.schedule), job.args, dict(job.kwargs), dict(job.options)]
        for name, job in scheduler._slots.jobs.items()
    },
}))
"""


def read_tables(folder: Path) -> dict[str, Any]:
    text = (_ROOT / "docs" / "django-celery-beat.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    script = folder / "proj.py"
    script.write_text(_BEFORE + snippet + _AFTER, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_how_to_reads_the_tables_as_they_are(tmp_path: Path) -> None:
    if importlib.util.find_spec("django_celery_beat") is None:
        if os.environ.get("SLOTQUEUE_TEST_CELERY") == "required":
            pytest.fail("django-celery-beat is not installed here, and SLOTQUEUE_TEST_CELERY=required", pytrace=False)
        pytest.skip("django-celery-beat is not installed here")
    found = read_tables(tmp_path)
    assert found["namespace"] == "shop"
    mine = {"celery_beat_task": True}
    assert found["jobs"] == {
        "mail": [
            "proj.mail", "every 60s", [1], {"to": "all"}, {"queue": "slow", "expires": 20, "headers": mine}
        ],
        "report": [
            "proj.report", "cron 30 2 * * * Europe/Berlin both days", [], {}, {"headers": {"tenant": "a", **mine}}
        ],
    }  # fmt: skip
