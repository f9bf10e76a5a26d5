"""Metrics for Prometheus: `Metrics(slots)` counts what this process does, and observes the namespace at a scrape.

What a process does (claims, lateness, run time) is counted in that process: sum it over all of them. What the
namespace looks like (outcomes, open, overdue, dead) is kept in Redis, and the same whichever process is scraped: take
the maximum.
Outcomes are counted by the scripts that end slots, so each slot is in one counter, however many processes die.

docs/metrics.md lists them all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping

from slotqueue.app import SlotQueue
from slotqueue.errors import ConfigurationError, MissingExtra, StoreUnavailable
from slotqueue.events import (
    EnqueueRefused,
    Event,
    PassFailed,
    SlotBroken,
    SlotClaimed,
    SlotHeld,
    SlotSkipped,
    SlotTaken,
    SlotTakenOver,
)
from slotqueue.guard_events import RunBegan, RunDone
from slotqueue.ops.observing import Observed
from slotqueue.slots import SlotState

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtra(
        "prometheus-client is not installed; install it with: pip install 'slotqueue[metrics]'"
    ) from error

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHERS = "(others)"
"""The job under which those without a label of their own are summed up."""
ENDS = tuple(state.value for state in SlotState if not state.is_open)
_FRESH_SECONDS = 5.0
_OBSERVE_SECONDS = 4.0
_LATE = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_LONG = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600, 14400, 86400)
_RESULTS: Mapping[type[Event], str] = {
    SlotClaimed: "won",
    SlotTaken: "taken",
    SlotHeld: "held",
    SlotSkipped: "skipped",
}


class Metrics(Collector):
    """The metrics of one application in this process.

    Args:
        slots: whose; give each process one `Metrics`, before it starts.
        registry: where they are registered; default: one of their own, see `registry`.
        per_job: whether what the namespace looks like is told job by job.
        most_jobs: so many jobs have a label of their own, by name; the others are summed up under "(others)". 0 to
            100,000.

    Raises:
        MissingExtra: at import: prometheus-client is not installed.
        ConfigurationError: `most_jobs` out of bounds.
    """

    def __init__(
        self,
        slots: SlotQueue,
        *,
        registry: CollectorRegistry | None = None,
        per_job: bool = True,
        most_jobs: int = 1000,
    ) -> None:
        if not 0 <= most_jobs <= 100_000:
            raise ConfigurationError(f"{most_jobs!r} is not between 0 and 100,000", argument="most_jobs")
        self.registry = registry if registry is not None else CollectorRegistry()
        self._slots = slots
        self._most_jobs = most_jobs if per_job else None
        self._observed: Observed | None = None
        self._observed_at = float("-inf")
        self._observing: asyncio.Task[None] | None = None
        space, registry = ("namespace",), self.registry
        self._claims = Counter(
            "slotqueue_claims",
            "Slots that this replica offered, by what came of it.",
            (*space, "result"),
            registry=registry,
        )
        self._enqueue_errors = Counter(
            "slotqueue_enqueue_errors", "Messages that a queue refused, or may have.", space, registry=registry
        )
        self._take_overs = Counter(
            "slotqueue_take_overs", "Open slots that this replica enqueued again.", space, registry=registry
        )
        self._failed_passes = Counter(
            "slotqueue_failed_passes", "Passes that ended in an error nobody foresaw.", space, registry=registry
        )
        self._broken = Counter(
            "slotqueue_broken_slots", "Times that damaged keys of a slot were met.", space, registry=registry
        )
        self._lateness = Histogram(
            "slotqueue_claim_lateness_seconds",
            "From fire time to claim; 0 for one claimed ahead.",
            space,
            buckets=_LATE,
            registry=registry,
        )
        self._queue_time = Histogram(
            "slotqueue_queue_time_seconds",
            "From claim, enqueue or hand-back to begin; of workers in this process.",
            space,
            buckets=_LONG,
            registry=registry,
        )
        self._run_time = Histogram(
            "slotqueue_run_time_seconds",
            "From begin to end of runs that ended well; of workers in this process.",
            space,
            buckets=_LONG,
            registry=registry,
        )
        for each in (self._enqueue_errors, self._take_overs, self._failed_passes, self._broken):
            each.labels(slots.namespace)
        for result in (*_RESULTS.values(), "broken"):
            self._claims.labels(slots.namespace, result)
        registry.register(self)
        slots.events.hooks.add(self._hear)

    async def refresh(self) -> None:
        """Observe the namespace, unless that was done within the last 5 s. Takes 4 s at most and raises nothing.

        Where Redis does not answer, `slotqueue_redis_up` is 0 and what is kept there is left out.
        """
        if time.monotonic() - self._observed_at < _FRESH_SECONDS:
            return
        if self._observing is None or self._observing.get_loop() is not asyncio.get_running_loop():
            self._observing = asyncio.create_task(self._observe())
            self._observing.add_done_callback(self._forget)
        await asyncio.wait([self._observing])

    async def exposition(self) -> bytes:
        """Observe, and say all of the registry in Prometheus' text format."""
        await self.refresh()
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Give what was last observed, and how this process ticks; prometheus-client asks."""
        yield from self._ticking()
        seen = self._observed
        yield self._gauge(
            "slotqueue_redis_up", "Whether Redis answered at the last observation.", int(seen is not None)
        )
        if seen is not None:
            yield from self._of_namespace(seen)

    # ---- what this process does

    def _hear(self, event: Event) -> None:
        space = self._slots.namespace
        match event:
            case SlotClaimed(late_ms=late):
                self._claims.labels(space, "won").inc()
                self._lateness.labels(space).observe(max(0, late) / 1000)
            case SlotTaken() | SlotHeld() | SlotSkipped():
                self._claims.labels(space, _RESULTS[type(event)]).inc()
            case EnqueueRefused():
                self._enqueue_errors.labels(space).inc()
            case SlotTakenOver():
                self._take_overs.labels(space).inc()
            case PassFailed():
                self._failed_passes.labels(space).inc()
            case SlotBroken():
                self._broken.labels(space).inc()
            case RunBegan(waited_ms=int(waited)):
                self._queue_time.labels(space).observe(waited / 1000)
            case RunDone(seconds=seconds):
                self._run_time.labels(space).observe(seconds)

    def _ticking(self) -> Iterator[Metric]:
        pulse = self._slots.pulse
        if pulse.tick_age is not None:
            at = time.time() - pulse.tick_age
            yield self._gauge("slotqueue_last_tick_timestamp_seconds", "When this replica last made a pass.", at)
        if pulse.clock_offset is not None:
            what = "How far this host's clock is ahead of Redis's."
            yield self._gauge("slotqueue_clock_offset_seconds", what, pulse.clock_offset)

    # ---- what the namespace looks like

    async def _observe(self) -> None:
        try:
            async with asyncio.timeout(_OBSERVE_SECONDS):
                self._observed = await self._slots.ops.observe()
        except (StoreUnavailable, TimeoutError):
            self._observed = None
        self._observed_at = time.monotonic()

    def _forget(self, task: asyncio.Task[None]) -> None:
        if self._observing is task:
            self._observing = None

    def _of_namespace(self, seen: Observed) -> Iterator[Metric]:
        space = self._slots.namespace
        claimed = CounterMetricFamily("slotqueue_slots_claimed", "Slots that were claimed.", labels=["namespace"])
        claimed.add_metric([space], seen.claimed)
        reopened = CounterMetricFamily(
            "slotqueue_slots_reopened", "Ended slots that were brought back or finished.", labels=["namespace"]
        )
        reopened.add_metric([space], seen.reopened)
        yield from (claimed, reopened)
        labelled = None if self._most_jobs is None else frozenset(seen.jobs[: self._most_jobs])
        job = [] if labelled is None else ["job"]
        labels = ["namespace", "outcome", *job]
        ended = CounterMetricFamily("slotqueue_slots_ended", "Slots by how they ended.", labels=labels)
        for outcome in ENDS:
            mine = {name: number for (state, name), number in seen.ended.items() if state == outcome}
            for label, number in _by_label(mine, labelled, ()):
                ended.add_metric([space, outcome, *label], number)
        yield ended
        for metric, text, by_job in (
            ("slotqueue_open_slots", "Slots that are not over yet.", seen.open),
            ("slotqueue_overdue_slots", "Open slots that should be done by now (done_within).", seen.overdue),
            ("slotqueue_dead_letters", "Slots that were given up, lost ones among them.", seen.dead),
            ("slotqueue_undecided_slots", "Slots due for a minute that no replica has decided.", seen.undecided),
        ):
            gauge = GaugeMetricFamily(metric, text, labels=["namespace", *job])
            for label, number in _by_label(by_job, labelled, seen.jobs):
                gauge.add_metric([space, *label], number)
            yield gauge
        yield self._gauge("slotqueue_jobs", "Jobs in force.", len(seen.jobs))
        yield self._gauge("slotqueue_replicas", "Replicas that gave a sign of life within a minute.", seen.replicas)
        yield self._gauge("slotqueue_workers", "Guarded workers that reported within a minute.", seen.workers)
        if seen.last_tick is not None:
            what = "When any replica last gave a sign of life, to 10 s."
            yield self._gauge("slotqueue_fleet_last_tick_timestamp_seconds", what, seen.last_tick.timestamp())

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        gauge = GaugeMetricFamily(name, text, labels=["namespace"])
        gauge.add_metric([self._slots.namespace], value)
        return gauge


def _by_label(
    numbers: Mapping[str, int], labelled: frozenset[str] | None, always: Iterable[str]
) -> list[tuple[tuple[str, ...], int]]:
    """Sum numbers up under the labels that there are: none, or so many jobs and the others.

    Args:
        numbers: by job.
        labelled: jobs with a label of their own; None where there is no such label.
        always: jobs that are named although they are zero.
    """
    if labelled is None:
        return [((), sum(numbers.values()))]
    found: dict[tuple[str, ...], int] = {(name,): numbers.get(name, 0) for name in always if name in labelled}
    found |= {(name,): number for name, number in numbers.items() if name in labelled}
    others = sum(number for name, number in numbers.items() if name not in labelled)
    if others:
        found[OTHERS,] = others
    return list(found.items())
