"""What the viewer sees while the demo runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from slotqueue.demo.ledger import Fact
from slotqueue.demo.narration import DRAMATIC, sentence
from slotqueue.demo.story import Stories
from slotqueue.demo.table import table_of

_LINES_OF_DRAMA = 6
_LINES_AROUND = 7
_NARROWEST = 70


class View(Protocol):
    """Shows a run."""

    def say(self, text: str) -> None:
        """Say what is going on, in place of what was said before."""
        ...

    def show(self, stories: Stories, news: Sequence[Fact]) -> None:
        """Show where the slots stand, and what is new."""
        ...

    def close(self) -> None:
        """Leave the screen as it is."""
        ...


class LiveView:
    """A table that changes in place, and below it what went wrong and who mended it.

    Args:
        console: a terminal.
        title: the first line.
    """

    def __init__(self, console: Console, title: str) -> None:
        self.console = console
        self.title = title
        self._said = ""
        self._stories: Stories | None = None
        self._drama: list[tuple[Fact, str]] = []
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._live.start()

    def say(self, text: str) -> None:
        """See `View.say`."""
        self._said = text
        self._refresh()

    def show(self, stories: Stories, news: Sequence[Fact]) -> None:
        """See `View.show`."""
        self._stories = stories
        for fact in news:
            if fact.what in DRAMATIC and (text := sentence(fact, stories.of(fact))):
                self._drama.append((fact, text))
        self._refresh()

    def close(self) -> None:
        """See `View.close`."""
        self._refresh()
        self._live.stop()

    def _refresh(self) -> None:
        parts: list[RenderableType] = [_one_line(self.title, "bold")]
        if self._stories is not None:
            drama = self._drama[-_LINES_OF_DRAMA:]
            rows = max(5, self.console.height - _LINES_AROUND - len(drama))
            parts += ["", table_of(self._stories, rows, time.time()), ""]
            parts += [_line(fact, text) for fact, text in drama]
        parts.append(_one_line(self._said, "dim"))
        self._live.update(Group(*parts), refresh=True)


class PlainView:
    """One line a fact.

    Args:
        console: any stream.
        title: the first line.
    """

    def __init__(self, console: Console, title: str) -> None:
        self.console = console
        self._began_at = time.time()
        self._print(title)

    def say(self, text: str) -> None:
        """See `View.say`."""
        if not text.endswith("..."):
            self._print(text)

    def show(self, stories: Stories, news: Sequence[Fact]) -> None:
        """See `View.show`."""
        for fact in news:
            if text := sentence(fact, stories.of(fact)):
                self._print(f"{fact.at - self._began_at:6.1f} s  {text}")

    def close(self) -> None:
        """See `View.close`."""

    def _print(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, markup=False, highlight=False)


def view_on(console: Console, title: str) -> View:
    """Choose the view that fits the stream."""
    is_live = console.is_terminal and not console.is_dumb_terminal and console.width >= _NARROWEST
    return LiveView(console, title) if is_live else PlainView(console, title)


def _line(fact: Fact, text: str) -> Text:
    style = {"SlotTakenOver": "green", "Restarted": "yellow"}.get(fact.what, "red")
    return _one_line(f"{time.strftime('%H:%M:%S', time.gmtime(fact.at))}  {text}", style)


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
