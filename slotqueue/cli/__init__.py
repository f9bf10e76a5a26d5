"""The command line: `slotqueue VERB [MODULE:ATTRIBUTE] ...`. It parses and prints; what it says comes from elsewhere.

Exit codes: 0 done, 1 found something wrong, 2 usage, 3 Redis unavailable, 130 interrupted.
"""

from __future__ import annotations

import click

from slotqueue.cli.verbs import Verb, Verbs
from slotqueue.process import own_version

_VERBS = {
    "run": Verb("slotqueue.cli.run:run", "Tick and sweep until told to stop: one replica."),
    "tick": Verb("slotqueue.cli.passes:tick", "Make one pass: claim and enqueue what is due."),
    "sweep": Verb("slotqueue.cli.passes:sweep", "Make one pass: take over open slots past their deadline."),
    "next": Verb("slotqueue.cli.fires:next_fires", "Show when jobs fire next."),
    "check": Verb("slotqueue.cli.check:check", "Find what would go wrong; starts and changes nothing."),
    "status": Verb("slotqueue.cli.status:status", "Show how each job stands: last slot, next one, what is wrong."),
    "slots": Verb("slotqueue.cli.slots:slots", "List the newest slots and where they stand."),
    "show": Verb("slotqueue.cli.slots:show", "Tell what happened to one slot, and why."),
    "audit": Verb("slotqueue.cli.audit:audit", "Find what should have run and did not."),
    "replicas": Verb("slotqueue.cli.processes:replicas", "List the replicas, and when each ticked last."),
    "workers": Verb("slotqueue.cli.processes:workers", "List the guarded workers, and their tasks."),
    "health": Verb("slotqueue.cli.health:health", "Tell whether this host's replica is well, for probes."),
    "retry": Verb("slotqueue.cli.orders:retry", "Bring a dead, lost, missed or skipped slot back."),
    "rerun": Verb("slotqueue.cli.orders:rerun", "Repeat the work of a done slot, as a slot of its own."),
    "trigger": Verb("slotqueue.cli.orders:trigger", "Run a job now, as a slot of its own."),
    "backfill": Verb("slotqueue.cli.backfill:backfill", "Run past slots of a job, oldest first."),
    "pause": Verb("slotqueue.cli.pauses:pause", "Pause jobs, or list the pauses."),
    "resume": Verb("slotqueue.cli.pauses:resume", "Let paused jobs go on."),
    "dead": Verb("slotqueue.cli.dead:dead", "List what was given up or lost; retry or discard it."),
    "forget": Verb("slotqueue.cli.dead:forget", "Forget a job that was removed from the code."),
    "jobs": Verb("slotqueue.cli.jobs:jobs", "Put, list and remove jobs that are stored in Redis."),
    "simulate": Verb(
        "slotqueue.cli.simulate:simulate",
        "Run days of schedule in seconds, with processes that die.",
        extra="server",
    ),
    "demo": Verb(
        "slotqueue.demo:demo_command", "Watch replicas and workers handle every slot once, some killed.", extra="demo"
    ),
}

_EXAMPLES = (
    ("slotqueue run app:slots", "one replica; start as many as you like"),
    ("slotqueue next app:slots nightly -n 3", "when does it fire?"),
    ("slotqueue check app:slots", "would it work?"),
    ("slotqueue audit --redis redis://localhost:6379/0 --since 24h", "has anything not run?"),
    ("slotqueue slots --redis redis://localhost:6379/0", "what happened lately?"),
    ("slotqueue show ran:nightly:2026-10-02T03:00 --redis redis://localhost:6379/0", "what happened to this one?"),
)


@click.command(cls=Verbs, verbs=_VERBS, examples=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(own_version(), prog_name="slotqueue")
def main() -> None:
    """Schedules on every replica, each slot decided once.

    Name the application as MODULE:ATTRIBUTE, where ATTRIBUTE is a SlotQueue, or a Celery application whose beat
    schedule is meant, or set SLOTQUEUE_APP. The current folder is on the Python path. Verbs that ask (`status`, `show`
    and their like) or act (`retry`, `pause` and their like) and `jobs` also work without code: --redis URL, or
    SLOTQUEUE_REDIS.

    Exit codes: 0 done, 1 found something wrong, 2 the command cannot be carried out as it was given, 3 Redis is
    unavailable; 130 after Ctrl-C, but for `run`, which then ends in order with 0.
    """
