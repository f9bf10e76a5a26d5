"""`slotqueue demo`: the command line of the demo."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from slotqueue.demo.run import Options, Run

_USAGE, _FOUND_WRONG, _NO_REDIS = 2, 1, 3


class Whole(click.IntRange):
    """A whole number within bounds."""

    name = "whole number"


@click.command("demo")
@click.option("--replicas", type=Whole(1, 50), default=5, show_default=True, help="Processes that tick and sweep.")
@click.option("--workers", type=Whole(1, 20), default=2, show_default=True, help="Processes that run the jobs.")
@click.option("--worker", type=click.Choice(["arq", "celery"]), help="Who runs the jobs.  [default: what is installed]")
@click.option("--slots", type=Whole(1, 1000), default=10, show_default=True, help="How many slots.")
@click.option("--every", type=Whole(1, 60), default=1, show_default=True, help="Seconds from one slot to the next.")
@click.option("--chaos/--no-chaos", default=True, help="Kill one replica and one worker at a bad moment (default).")
@click.option("--json", "is_json", is_flag=True, help="End with one JSON object on the last line of the output.")
@click.option("--keep", is_flag=True, help="Leave the server and its data for a look around.")
@click.option("--redis", metavar="URL", help="Use this Redis, with keys of its own that are removed afterwards.")
@click.option("--show-code", is_flag=True, help="Print the application that the demo runs, and end.")
def demo_command(  # noqa: PLR0913 - click gives an argument for each option
    *,
    replicas: int,
    workers: int,
    worker: str | None,
    slots: int,
    every: int,
    chaos: bool,
    is_json: bool,
    keep: bool,
    redis: str | None,
    show_code: bool,
) -> None:
    """Watch replicas and workers handle every slot once, while some of them are killed.

    Starts a Valkey server, replicas and workers of arq or Celery, all real processes. Ends with 1 if a slot was lost or
    repeated.
    """
    from slotqueue.demo.run import Options
    from slotqueue.demo.systems import system_named

    system = system_named(worker)
    if show_code:
        click.echo(system.source(), nl=False)
        return
    options = Options(system, replicas, workers, slots, every, chaos, keep, redis)
    sys.exit(_perform(options, is_json=is_json))


def _perform(options: Options, *, is_json: bool) -> int:
    """Run the demo; the exit code."""
    from rich.console import Console

    from slotqueue.demo.interrupts import Interrupted, Interrupts
    from slotqueue.demo.processes import ChildDied
    from slotqueue.demo.run import Run
    from slotqueue.embedded import ServerFailed, find_server
    from slotqueue.errors import ConfigurationError, StoreUnavailable

    try:
        options.system.check()
        advice = "install one, or name a running one: slotqueue demo --redis redis://localhost:6379/0"
        binary = find_server("the demo", advice) if options.redis is None else None
        with Interrupts() as interrupts, Run(options, binary, interrupts) as run:
            return _show(run, Console(stderr=is_json), is_json=is_json)
    except Interrupted as interrupted:
        _complain(f"Interrupted by {interrupted}: every process of the demo has ended.")
        return 128 + interrupted.signal
    except ConfigurationError as error:
        _complain(f"Error: {error}")
        return _USAGE
    except StoreUnavailable as error:
        _complain(f"Error: {error}")
        return _NO_REDIS
    except (ChildDied, ServerFailed) as error:
        _complain(f"Error: {error}")
        return _FOUND_WRONG


def _show(run: Run, console: Console, *, is_json: bool) -> int:
    import json

    from slotqueue.demo.interrupts import Interrupted
    from slotqueue.demo.summary import summary_of
    from slotqueue.demo.view import view_on

    view = view_on(console, _title(run))
    try:
        figures = run.perform(view)
        view.say("")
    except Interrupted:
        with contextlib.suppress(OSError):
            view.say("interrupted: ending every process ...")
        raise
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone
            view.close()
    bar = "#" if console.options.ascii_only else "\N{FULL BLOCK}"
    summary = summary_of(figures, run.stories, system=run.options.system.title, bar=bar)
    _print(console, summary)
    if run.options.is_kept:
        _print(console, "\n" + _look_around(run))
    if is_json:
        click.echo(json.dumps(figures.as_json()))
    return 0 if figures.is_good else _FOUND_WRONG


def _title(run: Run) -> str:
    from slotqueue.demo.narration import several

    options = run.options
    period = "second" if options.every == 1 else f"{options.every} s"
    replicas, slots = several(options.replicas, "replica"), several(options.slots, "slot")
    workers = several(options.workers, f"{options.system.title} worker")
    chaos = ", chaos" if options.has_chaos else ""
    return f"slotqueue demo: {replicas}, {workers}, a slot every {period}, {slots}{chaos}"


def _look_around(run: Run) -> str:
    """Say how to look at what was kept, and how to be rid of it."""
    named = "" if run.server is not None else f" --namespace {run.namespace}"
    where = f"--redis {run.url}{named}"
    example = max(run.stories.all, key=lambda story: len(story.taken_over))
    text = f"Kept. To look around:\n  slotqueue slots {where}\n  slotqueue show {example.key} {where}\n"
    if run.server is not None:
        return text + f"To stop the server:\n  kill {run.server.pid} && rm -r {run.folder}"
    return text + f"Its keys begin with {run.namespace}: and expire within a day or, for some, 90 days."


def _print(console: Console, text: str) -> None:
    """Print a text; on a terminal its lines break between words, elsewhere they stay whole."""
    console.print(text, soft_wrap=not console.is_terminal, markup=False, highlight=False)


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        click.echo(text, err=True)
