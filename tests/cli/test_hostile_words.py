"""Words on the command line that nobody meant: each verb answers in a line, and none with a traceback."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Slotqueue
from tests.store.stage import Stage

KEY = "ran:rollup:2026-10-02T03:00"
TEXTS = (
    "",
    "ran::2026-10-02T03:00",
    f"{KEY}~",
    "ran:rollup:0001-01-01T00:00",
    "ran:rollup:9999-12-31T23:59:59",
    "ran:rollup:٢٠٢٦-10-02T03:00",
    "other:rollup:2026-10-02T03:00",
    "ran:*:2026-10-02T03:00",
    "ran:open",
    "a\n\x1b[31mb",
    "\udcff",
    "x" * 100_000,
)
INSTANTS = (
    *("", "1e9h", "٢h", "\udcff", "2026-13-02T03:00", "9" * 400 + "d", "99999999d"),
    *("0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00", "0001-01-01", "9999-12-31"),
)
NAMES = [
    *(["show"], ["retry"], ["rerun", "--yes"], ["trigger"], ["forget"], ["pause"], ["resume"], ["jobs", "remove"]),
    *(["slots", "--job"], ["audit", "--job"], ["status", "--namespace"]),
]
TIMES = [
    *(["show", "rollup"], ["slots", "--since"], ["audit", "--since"], ["pause", "rollup", "--until"]),
    *(["backfill", "rollup", "--to", "2026-10-02T04:00", "--from"],),
]


@pytest.mark.parametrize("verb", NAMES, ids=" ".join)
def test_a_key_or_name_that_is_none_is_answered(verb: list[str], slotqueue: Slotqueue, stage: Stage) -> None:
    run, before = stage.running(), stage.snapshot()
    for text in TEXTS:
        _is_answered(slotqueue, _url(stage), verb, text)
    assert stage.state(run.slip.key) == "running"
    assert verb[0] == "pause" or stage.snapshot() == before


@pytest.mark.parametrize("verb", TIMES, ids=" ".join)
def test_an_instant_that_is_none_or_far_away_is_answered(verb: list[str], slotqueue: Slotqueue, stage: Stage) -> None:
    stage.running()
    for text in INSTANTS:
        _is_answered(slotqueue, _url(stage), verb, text)


def _url(stage: Stage) -> str:
    kwargs = stage.redis.connection_pool.connection_kwargs
    return f"redis://{kwargs['host']}:{kwargs['port']}/0"


def _is_answered(slotqueue: Slotqueue, url: str, verb: list[str], text: str) -> None:
    """Ask with the text in the last place."""
    at = 2 if verb[0] == "jobs" else 1
    words = [*verb[:at], "--redis", url, *verb[at:], text]
    result = slotqueue(*words)
    assert isinstance(result.exception, SystemExit | None), f"{words!r}: {result.exception!r}"
    assert result.exit_code in {0, 1, 2}, words
    assert result.exit_code == 0 or result.output.strip(), words
    assert "Traceback" not in result.output
    assert "\x1b[31m" not in result.output
