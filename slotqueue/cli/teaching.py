"""Help that teaches: each verb shows how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class Taught(click.Command):
    """A command whose help ends in examples.

    Args:
        examples: (command line, what it is for); the second may be empty.
    """

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(formatter, self.examples)
        super().format_epilog(ctx, formatter)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[tuple[str, str]]) -> None:
    """Write command lines so that they can be copied: each on its own line, never wrapped."""
    with formatter.section("Examples"):
        for line, purpose in examples:
            if purpose:
                formatter.write_text(f"# {purpose}")
            formatter.write(f"{' ' * formatter.current_indent}{line}\n")
