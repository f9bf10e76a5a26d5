"""`slotqueue health`: for exec probes; exit code 0 for well."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import click

from slotqueue.cli.failing import FOUND_SOMETHING, Wrong, printable
from slotqueue.cli.options import app_argument, site_options
from slotqueue.cli.teaching import Taught
from slotqueue.cli.where import ask, site_from
from slotqueue.errors import ConfigurationError
from slotqueue.http import address
from slotqueue.ops.health import Health
from slotqueue.ops.health import health as health_of

_SECONDS = 4.0


@click.command(
    cls=Taught,
    examples=[
        ("slotqueue health --redis redis://redis:6379/0", "the replica in this container, by the registry"),
        ("slotqueue health --worker --redis redis://redis:6379/0", "the arq or Celery worker in this container"),
        ("slotqueue health --http 127.0.0.1:9100 --live", "of `slotqueue run --http`: does its loop turn?"),
    ],
)
@app_argument
@site_options
@click.option("--http", metavar="HOST:PORT", help="Ask /readyz of `slotqueue run --http`, and no Redis.")
@click.option("--live", is_flag=True, help="With --http: ask /livez.")
@click.option("--worker", is_flag=True, help="A guarded worker is meant, instead of a replica.")
@click.option("--host", metavar="NAME", help="Of another host; '' for any.  [default: this one]")
@click.pass_context
def health(
    ctx: click.Context,
    *,
    app: str | None,
    redis: str | None,
    namespace: str | None,
    http: str | None,
    live: bool,
    worker: bool,
    host: str | None,
) -> None:
    """Tell whether the replica of this host is well: it gave a sign of life within a minute.

    With --worker the same of a guarded worker, which reports every 20 s. With --http it asks the process itself,
    also while Redis is away.

    Exit code 0 for well, 1 for not, 3 where Redis cannot be asked.
    """
    if http is not None:
        found = _asked(http, "livez" if live else "readyz")
    elif live:
        raise Wrong("--live asks the process itself: name it with --http HOST:PORT")
    else:
        found = ask(site_from(app, redis, namespace), lambda site: health_of(site, host=host, of_workers=worker))
    click.echo(printable(found.says))
    if not found.is_well:
        ctx.exit(FOUND_SOMETHING)


def _asked(where: str, path: str) -> Health:
    host, port = address(where)
    if host == "0.0.0.0":  # noqa: S104 - where to listen; from here that is this machine
        host = "127.0.0.1"
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/{path}"
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            return Health(is_well=True, says=_in_words(path, answer.read()))
    except urllib.error.HTTPError as error:
        with error:
            return Health(is_well=False, says=_in_words(path, error.read()))
    except (OSError, ValueError) as error:
        return Health(is_well=False, says=f"{url} does not answer: {error}")


def _in_words(path: str, body: bytes) -> str:
    try:
        facts = json.loads(body)
        age = facts["tick_age"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"what answers there is no slotqueue: {body[:100]!r}", argument="http") from error
    last = "it has made no pass yet" if age is None else f"its last pass ended well {age:.1f} s ago"
    return f"{path}: {'ok' if facts['ok'] else 'no'}, {last}"
