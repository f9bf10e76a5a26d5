"""The facts in words: one sentence each, for whoever watches."""

from __future__ import annotations

from slotqueue.demo.ledger import Fact
from slotqueue.demo.stage import BEFORE_ENQUEUE
from slotqueue.demo.story import Story
from slotqueue.slots import SlotState

DRAMATIC = ("Died", "SlotTakenOver", "SlotLost", "SlotDead", "Restarted")
_ORDINARY = {
    "SlotClaimed": "claimed by {by}",
    "Accepted": "queued by {by}",
    "begun": "begun by {by}",
    "finished": "finished by {by}",
}


def sentence(fact: Fact, story: Story | None) -> str:
    """Say what happened; "" for a fact that is not worth a line.

    Args:
        fact: what was written down.
        story: the slot it is about.
    """
    if fact.what == "Restarted":
        return f"{fact.by} starts, for the last of its kind was killed"
    predicate = _ORDINARY.get(fact.what, "").format(by=fact.by)
    if fact.what == "Died":
        predicate = f"{fact.by} is KILLED {fact.more['place']}"
    elif fact.what == "SlotTakenOver" and story is not None:
        predicate = f"{fact.by}'s sweep takes over, {_why(fact, story)}"
    elif fact.what in ("SlotLost", "SlotDead"):
        predicate = f"GIVEN UP: {fact.more.get('why', '')}"
    return f"slot {story.number}: {predicate}" if story is not None and predicate else ""


def several(count: int, word: str) -> str:
    """A count with its noun: "1 slot", "2 slots"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def is_before_enqueue(death: Fact) -> bool:
    """Whether it was the replica that died."""
    return bool(death.more["place"] == BEFORE_ENQUEUE)


def silence(fact: Fact, story: Story) -> float:
    """Seconds from the last death before a fact, or from the claim where nobody died, to that fact."""
    since = [each.at for each in (*story.claimed, *story.deaths) if each.at <= fact.at]
    return fact.at - max(since, default=fact.at)


def _why(fact: Fact, story: Story) -> str:
    silent = "worker" if fact.more.get("before") == SlotState.RUNNING else "replica"
    return f"its {silent} silent for {silence(fact, story):.1f} s"
