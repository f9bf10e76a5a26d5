"""Whatever a verb says, it never says a password: in any URL that can be given, reachable or not, readable or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from slotqueue.cli import main
from tests.cli.conftest import Slotqueue

SECRET = "s3cret-of-the-house"
URLS = (
    f"redis://user:{SECRET}@127.0.0.1:1/0",
    f"redis://user:{SECRET}/@127.0.0.1:1/0",
    f"rediss://:{SECRET}@127.0.0.1:1/0?ssl_cert_reqs=none",
    f"redis://user:{SECRET}@127.0.0.1:port/0",
    f"nonsense://user:{SECRET}@127.0.0.1:1/0",
    f"redis://127.0.0.1:1/0?password={SECRET}",
)
_KEY = "ran:mail:2026-10-02T03:00"
_ARGUMENTS = {
    "show": [_KEY],
    "retry": [_KEY],
    "rerun": [_KEY, "--yes"],
    "trigger": ["mail"],
    "backfill": ["mail", "--from", "2026-10-02T03:00Z", "--to", "2026-10-02T04:00Z"],
    "pause": ["mail"],
    "resume": ["mail"],
    "forget": ["mail"],
}
_GROUPS = {"jobs": [["list"], ["put", "mail", "every 5 min", "--task", "mail"], ["remove", "mail"]]}


def _takes_a_url(verb: str) -> bool:
    command = main.get_command(click.Context(main), verb)
    return any("--redis" in each.opts for each in _leaves(command))


def _leaves(command: click.Command | None) -> list[click.Parameter]:
    subs = command.commands.values() if isinstance(command, click.Group) else ()
    return [*(command.params if command else ()), *(param for sub in subs for param in sub.params)]


VERBS = [
    [verb, *sub]
    for verb in main.list_commands(click.Context(main))
    if verb not in ("demo", "simulate") and _takes_a_url(verb)
    for sub in _GROUPS.get(verb, [_ARGUMENTS.get(verb, [])])
]


def test_there_are_verbs_to_ask() -> None:
    assert len(VERBS) > 8


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_url_that_leads_nowhere_keeps_its_password(verb: list[str], url: str, slotqueue: Slotqueue) -> None:
    result = slotqueue(*verb, "--redis", url)
    assert result.exit_code in (2, 3), result.output
    assert SECRET not in result.output + result.stderr


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("verb", ["tick", "sweep", "check"])
def test_an_application_that_leads_nowhere_keeps_its_password(
    verb: str, url: str, slotqueue: Slotqueue, write_app: Callable[..., None], caplog: Any
) -> None:
    write_app("slots.add('mail', Every(minutes=1))\n", url)
    result = slotqueue(verb, "app:slots")
    assert result.exit_code in (1, 2, 3), result.output
    assert SECRET not in result.output + result.stderr + caplog.text
