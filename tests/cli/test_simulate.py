"""`slotqueue simulate`: the ledger of days, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Slotqueue

WriteApp = Callable[..., None]
JOBS = """
slots.add("nightly", Cron("30 2 * * *", tz="Europe/Berlin"))
slots.add("hourly", Every(hours=1), on_crash="skip")
"""
DAYS = ("--from", "2026-03-28", "--to", "2026-03-30")


def test_the_table_has_attempts_claims_and_runs_of_each_job(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("simulate", "app:slots", *DAYS)
    assert result.exit_code == 0, result.stderr
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["job", "slots", "attempts", "claims", "enqueues", "runs", "ended"],
        ["nightly", "2", "10", "2", "2", "2", "2", "done"],
        ["hourly", "48", "240", "48", "48", "48", "48", "done"],
        ["5", "replicas,", "slots", "from", "2026-03-28T00:00:00Z", "to", "2026-03-30T00:00:00Z"],
    ]


def test_as_json_each_slot_is_told_and_each_death(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("simulate", "app:slots", *DAYS, "--crash", "0.1", "--replicas", "2", "--seed", "3", "--json")
    assert result.exit_code == 0, result.stderr
    ledger = json.loads(result.stdout)
    assert ledger["start"] == "2026-03-28T00:00:00Z"
    assert sum(ledger["crashes"].values()) > 3
    assert "in the function" in ledger["crashes"]
    hourly = ledger["jobs"]["hourly"]
    assert sum(hourly["states"].values()) == hourly["due"] == 48
    assert hourly["states"]["lost"] > 0
    first = ledger["slots"][0]
    assert (first["key"], first["fire_time"]) == ("ran:hourly:2026-03-28T00:00", "2026-03-28T00:00:00Z")


def test_wrong_arguments_are_one_line(write_app: WriteApp, slotqueue: Slotqueue) -> None:
    write_app(JOBS)
    result = slotqueue("simulate", "app:slots", "--from", "2026-03-28", "--to", "2026-03-28")
    assert result.exit_code == 2
    assert result.stderr == "Error: end: 2026-03-28T00:00:00+00:00 is not after the start\n"
