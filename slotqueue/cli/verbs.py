"""The group of verbs: each is imported when it is used, so that one that cannot be imported breaks no other."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from slotqueue.cli.failing import INTERRUPTED, Wrong, exit_code_of, let_go_of_stdout, printable, say
from slotqueue.cli.teaching import write_examples
from slotqueue.errors import MissingExtra, SlotQueueError, near_names


class Verb(NamedTuple):
    """Where a verb lives ("module:attribute"), its line in the help, and the extra that it needs, if any."""

    target: str
    summary: str
    extra: str = ""


class Verbs(click.Group):
    """A group that imports its commands on use, and turns our errors into one line and an exit code.

    Args:
        verbs: by name, in the order of the help.
        examples: (command line, what it is for).
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's own
        verbs: Mapping[str, Verb],
        examples: Sequence[tuple[str, str]],
        **kwargs: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(*args, **kwargs)
        self._examples = examples
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's call
        """Name the verbs, in the order in which they are taught."""
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's call
        """Import a verb.

        Raises:
            Wrong: it needs what is not installed.
        """
        verb = self._verbs.get(cmd_name)
        if verb is None:
            return None
        module, _, attribute = verb.target.partition(":")
        try:
            found: click.Command = getattr(importlib.import_module(module), attribute)
        except MissingExtra as error:
            raise Wrong(str(error)) from error
        except (ImportError, AttributeError) as error:
            if not verb.extra:
                raise
            raise Wrong(
                f"`slotqueue {cmd_name}` cannot be loaded ({error}); "
                f"install what it needs with: pip install 'slotqueue[{verb.extra}]'"
            ) from error
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb of a command line; the error about an unknown one names those that come close."""
        for word in args:
            if not _is_text(word):
                raise click.UsageError(f"'{printable(word)}' is no text: its bytes are not UTF-8", ctx)
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0] not in self._verbs and (near := near_names(args[0], self._verbs)):
                raise click.UsageError(f"{error.message.rstrip('.')}; {near}", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in self._verbs.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(formatter, self._examples)
        super().format_epilog(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own
        """Run a verb; what slotqueue raises on purpose becomes one line."""
        try:
            return super().invoke(ctx)
        except SlotQueueError as error:
            say(str(error))
            ctx.exit(exit_code_of(error))
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:  # `| head`: the reader has seen enough
            let_go_of_stdout()
            ctx.exit(0)

    def main(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - click's own
        """Run the command line; what is left in the buffer of a pipe that nobody reads is no error."""
        try:
            return super().main(*args, **kwargs)
        finally:
            try:
                sys.stdout.flush()
            except BrokenPipeError:
                let_go_of_stdout()


def _is_text(word: str) -> bool:
    """Whether a word of the command line can be sent anywhere: bytes that are not UTF-8 arrive as lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
