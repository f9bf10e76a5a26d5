"""How the command line says that something is wrong: one line on stderr, and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys

import click

from slotqueue.errors import SlotQueueError, StoreUnavailable, WrongStore

FOUND_SOMETHING = 1
USAGE = 2
UNAVAILABLE = 3
INTERRUPTED = 130


class Wrong(click.ClickException):
    """The command cannot be carried out as it was given."""

    exit_code = USAGE

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def exit_code_of(error: SlotQueueError) -> int:
    """3 where Redis is unavailable, 2 for all that the caller can put right."""
    is_away = isinstance(error, StoreUnavailable) and not isinstance(error, WrongStore)
    return UNAVAILABLE if is_away else USAGE


def say(problem: str) -> None:
    """Say in one line what is wrong."""
    click.echo(f"Error: {printable(problem)}", err=True)


def let_go_of_stdout() -> None:
    """Write to nowhere from now on: nobody reads the pipe, and the interpreter would complain at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def printable(text: str) -> str:
    """Escape what would not stay on its line or could steer the terminal: names and errors come from anywhere."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
