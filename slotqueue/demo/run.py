"""One run of the demo: set up, start at an instant that all know, watch until every slot has ended, tidy up."""

from __future__ import annotations

import contextlib
import math
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from slotqueue.demo.crew import Crew
from slotqueue.demo.interrupts import Interrupts
from slotqueue.demo.ledger import Fact, Ledger
from slotqueue.demo.narration import several
from slotqueue.demo.processes import Child
from slotqueue.demo.stage import BEFORE_ENQUEUE, IN_JOB, JOB, Stage, order_at
from slotqueue.demo.story import Figures, Stories
from slotqueue.demo.systems import WorkerSystem
from slotqueue.demo.view import View
from slotqueue.embedded import EmbeddedServer, ServerFailed
from slotqueue.slots import DEFAULT_NAMESPACE, from_ms, key_at
from slotqueue.store.connections import UNREACHABLE, safe_url, unavailable

_LEAD_SECONDS = 1.5
_PATIENCE_SECONDS = 40.0
"""After the last slot's time: the grace of 10 s, a lease of 3 s, sweeps, a restart, and a busy machine."""
_STRAGGLER_SECONDS = 3.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said. `redis`: somebody's own server, or None for the embedded one."""

    system: WorkerSystem
    replicas: int
    workers: int
    slots: int
    every: int
    has_chaos: bool
    is_kept: bool
    redis: str | None


class Run:
    """A run, from the first process to the last. In its block things live; at the end all of them are gone.

    Args:
        options: what the command line said.
        server: the embedded server's program, None where `options.redis` names a server.
        view: shows it.
        interrupts: asked at every step.
    """

    def __init__(self, options: Options, binary: Path | None, interrupts: Interrupts) -> None:
        self.options = options
        self.interrupts = interrupts
        self.folder = Path(tempfile.mkdtemp(prefix="slotqueue-demo-"))
        self.server = EmbeddedServer(binary, self.folder) if binary is not None else None
        self.namespace = DEFAULT_NAMESPACE if self.server else f"demo-{secrets.token_hex(3)}"
        self.stories = Stories([])
        self.is_finished = False
        self._crew = Crew(options.system, options.replicas, options.workers)
        self._ledger: Ledger | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crew.stop()
        is_kept = self.options.is_kept and self.is_finished
        if self._ledger is not None:
            with contextlib.suppress(*UNREACHABLE):
                if self.server is None and not is_kept:
                    self._erase(self._ledger)
            self._ledger.close()
        if self.server is not None and not is_kept:
            self.server.stop()
        if self.server is None or not is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """Of the Redis in use."""
        return self.server.url if self.server is not None else self.options.redis or ""

    def perform(self, view: View) -> Figures:
        """Run it.

        Returns:
            What was counted.

        Raises:
            StoreUnavailable: the server named by `--redis` does not answer.
            ChildDied: a process ended that nobody had killed.
            Interrupted: by a signal.
        """
        began_at = time.monotonic()
        if self.server is not None:
            view.say("starting a server ...")
            self.server.start()
        try:
            ledger = self._ledger = Ledger(self.url, self.namespace, self.folder)
            ledger.now()
            self._crew.start(self._stage(), self.interrupts)
            self._crew.wait_until_ready(ledger, view, self.interrupts)
            start = self._first_slot(ledger)
            self._lay_out(start)
            self._crew.tell_replicas(_start_line(start))
            self._watch(ledger, start, view)
        except UNREACHABLE as error:
            raise unavailable(safe_url(self.url), error) from error
        view.say("stopping the replicas and workers ...")
        self._crew.stop()
        self.stories.add(ledger.news())
        self.stories.set_states(ledger.states(self.stories.open_keys()))
        self.is_finished = True
        seconds = time.monotonic() - began_at
        return self.stories.figures(replicas=self.options.replicas, workers=self.options.workers, seconds=seconds)

    # ---- before the first slot

    def _stage(self) -> Stage:
        """What all children are given; the crew gives the names."""
        return Stage(
            url=self.url,
            namespace=self.namespace,
            queue=self.options.system.queue_of(self.namespace),
            name="",
            every=self.options.every,
            slots=self.options.slots,
            folder=str(self.folder),
            is_replica=False,
        )

    def _first_slot(self, ledger: Ledger) -> datetime:
        """The first whole multiple of the period by Redis's clock that leaves the replicas time to register."""
        every = self.options.every
        soonest = ledger.now() + _LEAD_SECONDS + 0.05 * self.options.replicas
        return from_ms(math.ceil(soonest / every) * every * 1000)

    def _lay_out(self, start: datetime) -> None:
        """Name the slots, and say who shall die where."""
        fires = [start + timedelta(seconds=self.options.every * i) for i in range(self.options.slots)]
        self.stories = Stories((key_at(self.namespace, JOB, fire), fire) for fire in fires)
        if self.options.has_chaos:
            # The third and the fifth slot, so that one has seen how it goes without; with few slots, the last.
            for place, number in ((BEFORE_ENQUEUE, 3), (IN_JOB, 5)):
                story = self.stories.all[min(number, self.options.slots) - 1]
                order_at(self.folder, place).write_text(story.key)

    # ---- while it runs

    def _watch(self, ledger: Ledger, start: datetime, view: View) -> None:
        seconds_ahead = start.timestamp() - ledger.now()
        starts_at = time.monotonic() + seconds_ahead
        ends_at = starts_at + self.options.every * self.options.slots + _PATIENCE_SECONDS
        closed_at: float | None = None
        while True:
            self.interrupts.sleep(_LOOK_SECONDS)
            self._check_server()
            dead = self._crew.dead()
            news = ledger.news()
            self.stories.add(news)
            self.stories.set_states(ledger.states(self.stories.out_keys()))
            news += self._see_to_the_dead(dead, start)
            view.say(self._situation(starts_at))
            view.show(self.stories, news)
            now = time.monotonic()
            if not self.stories.open_keys():
                closed_at = closed_at or now
                if self._has_every_attempt() or now > closed_at + _STRAGGLER_SECONDS:
                    return
            if now > ends_at:
                return

    def _check_server(self) -> None:
        if self.server is not None and not self.server.is_running:
            raise ServerFailed("the demo's server ended unexpectedly")

    def _see_to_the_dead(self, dead: Sequence[Child], start: datetime) -> list[Fact]:
        """Tell a death on order from any other; start another one where the last of its kind has died."""
        ordered = {death.by for death in self.stories.deaths}
        facts = []
        for child in dead:
            if child.name not in ordered:
                raise child.unexpected()
            another = self._crew.replace(child, _start_line(start))
            if another is not None:
                facts.append(Fact(time.time(), "Restarted", another.name, "", {}))
        return facts

    def _has_every_attempt(self) -> bool:
        counts = self.stories.attempts_by()
        return all(counts[child.name] == self.options.slots for child in self._crew.first_replicas())

    def _situation(self, starts_at: float) -> str:
        ahead = starts_at - time.monotonic()
        if ahead > 0 and not any(story.claimed for story in self.stories.all):
            return f"all are ready; the first slot is due in {ahead:.0f} s ..."
        count = len(self.stories.all) - len(self.stories.open_keys())
        replicas, workers = (len(self._crew.living(is_replica=kind)) for kind in (True, False))
        alive = f"{several(replicas, 'replica')}, {several(workers, 'worker')}"
        return f"{count} of {several(len(self.stories.all), 'slot')} ended; alive: {alive} ..."

    def _erase(self, ledger: Ledger) -> None:
        keys = [story.key for story in self.stories.all]
        system = self.options.system
        ledger.erase(JOB, keys, system.keys_of(system.queue_of(self.namespace), keys))


def _start_line(start: datetime) -> str:
    """What replicas are told: the instant of the first slot, ms since the epoch."""
    return str(round(start.timestamp() * 1000))
