"""Every page of the documentation is true: its Python runs, its commands run or at least parse.

- A Python block is executed here, on a real Redis, unless the page has a test of its own that names it.
- `<!-- file: NAME.py -->` above a block makes it a file that the page's commands find.
- The lines of a `console` block are executed one after the other. Those of any other block are parsed.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from slotqueue.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
DOCUMENTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("examples/*/README.md"))]
URL = "redis://localhost:6379/0"
_BLOCK = re.compile(
    r"(?:^<!-- (?:file: )?(?P<mark>[^>]*?) -->\n+)?^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)
_INDENTED = re.compile(r"^ {4,}(.*\bslotqueue .*)$", re.MULTILINE)
_LAUNCHERS = {"docker", "exec", "kubectl", "nohup", "python", "uv"}
_OPERATORS = {"|", ";", "&&", "||", "&", ">", ">>"}


class Block(NamedTuple):
    """A fenced block: its language, what the comment above it says, its text."""

    kind: str
    mark: str
    text: str


def blocks(page: Path, kind: str = "") -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = [Block(each["kind"], each["mark"] or "", each["text"]) for each in _BLOCK.finditer(text)]
    return [block for block in found if kind in ("", block.kind)]


def has_a_test_of_its_own(page: Path) -> bool:
    tests = (path for path in (ROOT / "tests").rglob("test_*.py") if path.name != Path(__file__).name)
    return any(page.name in path.read_text(encoding="utf-8") for path in tests)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, empty; what is imported from there is forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", sorted(DOCS.glob("from-*.md")), ids=name_of)
def test_who_comes_from_elsewhere_reads_less_than_forty_lines(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_its_python_compiles(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block.text, name_of(page), "exec")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_its_python_runs(page: Path, folder: Path, redis_url: str) -> None:
    if has_a_test_of_its_own(page):
        return
    for block in blocks(page, "python"):
        code = block.text.replace(URL, redis_url)
        exec(compile(code, name_of(page), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name_of)
def test_its_commands_run(page: Path, folder: Path, redis_url: str) -> None:
    for block in blocks(page, "python"):
        if re.fullmatch(r"\w+\.py", block.mark):
            (folder / block.mark).write_text(block.text.replace(URL, redis_url), encoding="utf-8")
    for block in blocks(page, "console"):
        for words in commands_in(block.text):
            said = [word.replace(URL, redis_url) for word in words]
            done = CliRunner().invoke(main, said, prog_name="slotqueue")
            assert done.exit_code == 0, f"slotqueue {shlex.join(words)}: {done.output}"
            sys.modules.pop("app", None)


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_command_in_it_is_one(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [block.text for block in blocks(page) if block.kind != "python"]
    code += _INDENTED.findall(_BLOCK.sub("", text))
    for words in commands_in("\n".join(code)):
        check(words)
    for verb in re.findall(r"`slotqueue ([a-z][a-z-]*)", text):
        assert main.get_command(click.Context(main), verb), f"`slotqueue {verb}` is no verb"


def commands_in(text: str) -> Iterator[list[str]]:
    """The words behind each `slotqueue`, up to the end of the command."""
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line.removeprefix("$ "), comments=True)
        except ValueError:  # a quote that belongs to another language
            continue
        for word in words:
            for part in word.split(";"):
                if part.strip().startswith("slotqueue ") and len(words) > 1:
                    yield shlex.split(part)[1:]
        before = words[: words.index("slotqueue")] if "slotqueue" in words else [""]
        if not before or before[0] in _LAUNCHERS or "=" in before[0]:
            rest = words[len(before) + 1 :]
            ends = [i for i, word in enumerate(rest) if word in _OPERATORS or word.endswith(";")]
            yield rest[: ends[0] if ends else None]


def check(words: list[str]) -> None:
    """Parse a command line as click does, and run nothing."""
    context, command, rest = click.Context(main, info_name="slotqueue"), click.Command("none"), list(words)
    command = main
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        context, command = click.Context(found, parent=context, info_name=name), found
    try:
        with command.make_context(command.name, rest, parent=context.parent):
            pass
    except click.exceptions.Exit:  # --help
        pass
    except click.UsageError as error:
        raise AssertionError(f"slotqueue {shlex.join(words)}: {error.format_message()}") from error
