"""The table of slots: one row each, who did what and where it stands."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from slotqueue.demo.narration import is_before_enqueue
from slotqueue.demo.story import Stories, Story
from slotqueue.slots import SlotState

_GRACE_SECONDS = 10.0
_LEASE_SECONDS = 3.0


def table_of(stories: Stories, rows: int, now: float) -> Table:
    """Draw the slots that are open, and the newest of the others, as far as there is room.

    Args:
        stories: all slots.
        rows: how many fit.
        now: seconds since the epoch.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("slot", justify="right", no_wrap=True, min_width=4)
    table.add_column("UTC", no_wrap=True, min_width=8)
    table.add_column("claim won by", no_wrap=True, min_width=14)
    table.add_column("queued", justify="right", no_wrap=True, min_width=7)
    table.add_column("run by", no_wrap=True, min_width=8)
    table.add_column("now", no_wrap=True, min_width=23)
    for story in _chosen(stories.all, rows):
        fire = story.fire_time.strftime("%H:%M:%S")
        table.add_row(str(story.number), fire, _claimer(story), _queued(story), _runner(story), _standing(story, now))
    return table


def _chosen(stories: list[Story], rows: int) -> list[Story]:
    if len(stories) <= rows:
        return stories
    begun = [story for story in stories if story.claimed]
    troubled = [story for story in begun if story.is_open][:rows]
    newest = begun[-(rows - len(troubled)) :] if len(troubled) < rows else []
    chosen = {story.number: story for story in [*troubled, *newest]}
    upcoming = [story for story in stories if not story.claimed][: rows - len(chosen)]
    return sorted([*chosen.values(), *upcoming], key=lambda story: story.number)


def _claimer(story: Story) -> Text:
    """Who won, and of how many that tried."""
    if not story.claimed:
        return Text("")
    name = story.claimed[0].by
    is_dead = any(is_before_enqueue(death) for death in story.deaths)
    return Text.assemble((name, "red strike" if is_dead else ""), (f" of {len(story.attempted_by)}", "dim"))


def _queued(story: Story) -> str:
    """How long after its fire time the queue had it, by Redis's clock up to the claim."""
    if not story.accepted or not story.claimed:
        return ""
    claim = story.claimed[0]
    late = float(claim.more.get("late_ms", 0)) / 1000 + story.accepted[0].at - claim.at
    return f"+{late:.1f} s" if late >= 1 else f"+{late * 1000:.0f} ms"


def _runner(story: Story) -> Text:
    if not story.begun:
        return Text("")
    name = story.begun[-1].by
    is_dead = any(death.by == name for death in story.deaths) and not story.finished
    return Text(name, style="red strike" if is_dead else "")


def _standing(story: Story, now: float) -> Text:
    """Where the slot stands, in words."""
    if story.state == SlotState.DONE and story.taken_over:
        return Text(f"done, recovered by {story.taken_over[-1].by}", style="bold green")
    if story.state and not story.is_open:
        return Text(story.state, style="green" if story.state == SlotState.DONE else "bold red")
    if len(story.deaths) > len(story.taken_over):
        return _waiting(story, now)
    if story.taken_over:
        return Text(f"taken over by {story.taken_over[-1].by}", style="yellow")
    word = "running" if story.begun else story.state or "claimed"
    return Text(word if story.claimed else "", style="cyan")


def _waiting(story: Story, now: float) -> Text:
    death = story.deaths[-1]
    due = story.claimed[0].at + _GRACE_SECONDS if is_before_enqueue(death) else death.at + _LEASE_SECONDS
    when = f"in {due - now:.0f} s" if due - now >= 0.5 else "now"
    return Text(f"KILLED, sweep {when}", style="bold red")
