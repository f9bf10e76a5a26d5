"""The end of the demo in words: the figures as bars, and what they say."""

from __future__ import annotations

from collections.abc import Iterator

from slotqueue.demo.narration import is_before_enqueue, several, silence
from slotqueue.demo.story import Figures, Stories, Story

_WIDTH = 20


def summary_of(figures: Figures, stories: Stories, *, system: str, bar: str) -> str:
    """Write the summary.

    Args:
        figures: as counted.
        stories: what they were counted from.
        system: the worker system's name.
        bar: the character that bars are made of.
    """
    slots, replicas = several(figures.slots, "slot"), several(figures.replicas, "replica")
    workers = several(figures.workers, f"{system} worker")
    title = f"{slots}, {replicas}, {workers}: {figures.seconds:.1f} s in all"
    return "\n".join([title, "", *_bars(figures, stories, bar), "", *_verdict(figures, stories)])


def _bars(figures: Figures, stories: Stories, bar: str) -> Iterator[str]:
    most = max(figures.attempts, figures.runs, 1)
    rows = (
        ("attempts", figures.attempts, _about_attempts(figures, stories)),
        ("taken", figures.taken, "another replica had claimed the slot"),
        ("claimed", figures.claimed, "won"),
        ("enqueued", figures.enqueued, f"messages in the queue{_again(figures.enqueued, figures)}"),
        ("runs", figures.runs, f"jobs begun{_again(figures.runs, figures)}"),
        ("done", figures.done, "slots with a done marker"),
    )
    for word, count, about in rows:
        length = round(count / most * _WIDTH) if count else 0
        yield f"  {word:<9}{count:>5}  {bar * max(length, min(count, 1)):<{_WIDTH}}  {about}"


def _about_attempts(figures: Figures, stories: Stories) -> str:
    if figures.attempts == figures.replicas * figures.slots:
        return f"{several(figures.replicas, 'replica')} x {several(figures.slots, 'slot')}"
    dead = [(death.by, stories.of(death)) for death in stories.deaths if is_before_enqueue(death)]
    fewer = ", ".join(f"{name} died at slot {story.number}" for name, story in dead if story)
    return f"{figures.replicas} x {figures.slots}, but {fewer}" if fewer else "some replicas missed some slots"


def _again(count: int, figures: Figures) -> str:
    more = count - figures.slots
    return f", {more} of them again" if more > 0 else ""


def _verdict(figures: Figures, stories: Stories) -> Iterator[str]:
    for story in stories.all:
        if story.is_recovered:
            yield _recovery(story)
    if figures.lost:
        numbers = (f"{story.number} ({story.state or 'never claimed'})" for story in stories.all if story.is_lost)
        yield f"LOST, not done: slot {', '.join(numbers)}."
    if figures.repeated:
        numbers = (str(story.number) for story in stories.all if len(story.finished) > 1)
        yield f"REPEATED, finished more than once: slot {', '.join(numbers)}."
    if figures.is_good:
        killed = " and ".join(death.by for death in stories.deaths)
        if killed:
            yield f"{killed} {'was' if len(stories.deaths) == 1 else 'were'} killed; the others saw to their slots."
        yield f"Every slot is done, and none was finished twice: {figures.done} of {figures.slots}."


def _recovery(story: Story) -> str:
    over = story.taken_over[-1]
    cause = "its deadline had passed"
    if story.deaths:
        cause = f"{story.deaths[-1].by} was killed {story.deaths[-1].more['place']}"
    finisher = story.finished[-1].by if story.finished else "a worker"
    return (
        f"Slot {story.number} was recovered: {cause}; {silence(over, story):.1f} s later "
        f"the sweep of {over.by} enqueued it again, and {finisher} finished it."
    )
