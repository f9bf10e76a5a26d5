"""`python -m tests.soak`: break a service on purpose for a while, and judge what it did."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from time import monotonic

import click

from tests.soak.soak import Outcome, Plan, Soak


@click.command()
@click.option("--seed", default=1, envvar="SEED", show_default=True, show_envvar=True, help="Of all choices.")
@click.option("--minutes", default=10.0, envvar="MINUTES", show_default=True, show_envvar=True, help="How long.")
@click.option(
    "--worker",
    type=click.Choice(["arq", "celery"]),
    default="arq",
    envvar="WORKER",
    show_default=True,
    show_envvar=True,
)
@click.option(
    "--broker",
    type=click.Choice(["redis", "rabbitmq"]),
    default="redis",
    envvar="BROKER",
    show_default=True,
    show_envvar=True,
    help="Where Celery's messages are.",
)
@click.option("--kind", "kinds", multiple=True, help="Only faults made by these functions of tests/soak/faults.py.")
@click.option("--replicas-to-ack", default=0, show_default=True, help="See SlotQueue.")
@click.option("--every", "every_s", default=2.0, show_default=True, help="Seconds between faults, on average.")
@click.option("--keep", is_flag=True, help="Leave ledger and logs where they are, whatever came of it.")
def main(
    seed: int,
    minutes: float,
    worker: str,
    broker: str,
    kinds: tuple[str, ...],
    replicas_to_ack: int,
    every_s: float,
    keep: bool,
) -> None:
    """Kill, freeze, cut, empty and mislead a service of three replicas and two workers, and check every promise.

    The last line is a JSON object. Exit code 1 where a promise was not kept; ledger and logs stay then.
    """
    folder = Path(tempfile.mkdtemp(prefix="slotqueue-soak-"))
    began = monotonic()

    def say(line: str) -> None:
        click.echo(f"{monotonic() - began:7.1f} s  {line}")

    if broker == "rabbitmq" and worker != "celery":
        raise click.UsageError("arq's messages are always in Redis: BROKER=rabbitmq wants WORKER=celery")
    plan = Plan(seed, minutes * 60, worker, broker, replicas_to_ack, kinds=kinds, every_s=every_s)
    with Soak(plan, folder, say) as soak:
        outcome = soak.run()
    _report(outcome, folder, keep=keep)


def _report(outcome: Outcome, folder: Path, *, keep: bool) -> None:
    for violation in outcome.violations:
        click.echo(str(violation))
    if outcome.violations:
        click.echo(f"{len(outcome.violations)} promises were not kept")
    else:
        click.echo("every promise was kept")
    if outcome.violations or keep:
        click.echo(f"ledger and logs: {folder}")
    else:
        shutil.rmtree(folder)
    click.echo(json.dumps({"violations": len(outcome.violations), **asdict(outcome.figures)}))
    sys.exit(bool(outcome.violations))


main()
