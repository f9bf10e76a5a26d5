"""What happened to each slot, told by the facts; and the figures, counted from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import chain

from slotqueue.demo.ledger import Fact
from slotqueue.slots import SlotState


@dataclass(slots=True)
class Story:
    """One slot, from its claim to its end.

    Args:
        number: 1 for the first.
        key: the slot key.
        fire_time: aware UTC instant.
        state: by the store's record, "" for none.
    """

    number: int
    key: str
    fire_time: datetime
    state: str = ""
    claimed: list[Fact] = field(default_factory=list)
    taken: list[Fact] = field(default_factory=list)
    accepted: list[Fact] = field(default_factory=list)
    begun: list[Fact] = field(default_factory=list)
    finished: list[Fact] = field(default_factory=list)
    taken_over: list[Fact] = field(default_factory=list)
    deaths: list[Fact] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether its end is still owed."""
        return not self.state or SlotState(self.state).is_open

    @property
    def is_lost(self) -> bool:
        """Whether it is not done; asked at the end."""
        return self.state != SlotState.DONE

    @property
    def is_recovered(self) -> bool:
        """Whether it is done because a sweep took it over."""
        return bool(self.taken_over) and self.state == SlotState.DONE

    @property
    def claimed_by(self) -> set[str]:
        """The replicas that won it: one."""
        return {fact.by for fact in self.claimed}

    @property
    def attempted_by(self) -> set[str]:
        """The replicas that tried to claim it."""
        return {fact.by for fact in chain(self.claimed, self.taken)}

    def add(self, fact: Fact) -> None:
        """Take a fact in; those that say nothing here are passed over."""
        kinds = {
            "SlotClaimed": self.claimed,
            "SlotTaken": self.taken,
            "Accepted": self.accepted,
            "begun": self.begun,
            "finished": self.finished,
            "SlotTakenOver": self.taken_over,
            "Died": self.deaths,
        }
        if fact.what in kinds:
            kinds[fact.what].append(fact)


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted at the end, in the order of the JSON object.

    Args:
        attempts: how often a replica tried to claim a slot.
        claimed: how many of these won; `taken`: how many lost.
        enqueued: messages that the queue took.
        runs: how often a job began.
        done: slots that the store has on record as done.
        repeated: slots whose job finished more than once.
        lost: slots that are not done.
        recovered: slots that are done because a sweep took them over.
    """

    replicas: int
    workers: int
    slots: int
    attempts: int
    claimed: int
    taken: int
    enqueued: int
    runs: int
    done: int
    repeated: int
    lost: int
    recovered: int
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether every slot was done, and none twice."""
        return not self.lost and not self.repeated

    def as_json(self) -> dict[str, int | float]:
        """The object of `--json`."""
        return asdict(self)


class Stories:
    """All slots of the demo, in order."""

    def __init__(self, keys: Iterable[tuple[str, datetime]]) -> None:
        self.all = [Story(number, key, fire_time) for number, (key, fire_time) in enumerate(keys, 1)]
        self.deaths: list[Fact] = []
        self._by_key = {story.key: story for story in self.all}

    def of(self, fact: Fact) -> Story | None:
        """The slot that a fact is about."""
        return self._by_key.get(fact.key)

    def add(self, facts: Iterable[Fact]) -> None:
        """Take facts in."""
        for fact in facts:
            story = self.of(fact)
            if story is not None:
                story.add(fact)
            if fact.what == "Died":
                self.deaths.append(fact)

    def set_states(self, states: dict[str, str]) -> None:
        """Take in where slots stand."""
        for key, state in states.items():
            self._by_key[key].state = state

    def open_keys(self) -> list[str]:
        """Keys of the slots whose end is still owed."""
        return [story.key for story in self.all if story.is_open]

    def out_keys(self) -> list[str]:
        """Keys of the open slots that some replica has tried to claim."""
        return [story.key for story in self.all if story.is_open and story.attempted_by]

    def attempts_by(self) -> Counter[str]:
        """How many slots each replica tried to claim."""
        return Counter(name for story in self.all for name in story.attempted_by)

    def figures(self, *, replicas: int, workers: int, seconds: float) -> Figures:
        """Count."""
        claimed = sum(len(story.claimed_by) for story in self.all)
        taken = sum(len(story.attempted_by - story.claimed_by) for story in self.all)
        lost = sum(story.is_lost for story in self.all)
        return Figures(
            replicas=replicas,
            workers=workers,
            slots=len(self.all),
            attempts=claimed + taken,
            claimed=claimed,
            taken=taken,
            enqueued=sum(len(story.accepted) for story in self.all),
            runs=sum(len(story.begun) for story in self.all),
            done=len(self.all) - lost,
            repeated=sum(len(story.finished) > 1 for story in self.all),
            lost=lost,
            recovered=sum(story.is_recovered for story in self.all),
            seconds=round(seconds, 1),
        )
