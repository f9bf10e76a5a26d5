"""MODULE:ATTRIBUTE -> the `SlotQueue`, or that of a Celery application's beat schedule; else what to do about it."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

import click

import slotqueue
from slotqueue.app import SlotQueue
from slotqueue.cli.failing import Wrong
from slotqueue.errors import ConfigurationError, MissingExtra
from slotqueue.words import did_you_mean

APP_VARIABLE = "SLOTQUEUE_APP"
_STDLIB = sysconfig.get_path("stdlib")
_EXTRAS = ("arq", "celery")
"""Worker systems: extras of slotqueue under their own names."""
_OURS = str(Path(slotqueue.__file__).parent)


class Misconfigured(Wrong):
    """The application says something that cannot work: a schedule, a policy, an argument."""


def load_app(named: str | None) -> SlotQueue:
    """Import an application.

    Args:
        named: MODULE:ATTRIBUTE; None for what the environment says.

    Raises:
        Wrong: it cannot be found or used; one line says what to do.
        Misconfigured: its module says something that cannot work.
    """
    text = named or os.environ.get(APP_VARIABLE)
    if not text:
        raise Wrong(f"name the application as MODULE:ATTRIBUTE, such as app:slots, or set {APP_VARIABLE}")
    module_name, _, attribute = text.partition(":")
    _check_form(text, module_name, attribute)
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = _import(module_name)
    found: object = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise Wrong(f"the module {module_name!r} has no {attribute!r}; {_instead(module, attribute)}")
        found = getattr(found, name)
    if _is_celery(found):
        return _read_beat_schedule(found)
    if not isinstance(found, SlotQueue):
        raise Wrong(f"{text} is no SlotQueue, it is a {type(found).__name__}; {_instead(module, attribute)}")
    return found


def _is_celery(found: object) -> bool:
    """Whether it is a Celery application; whoever has one has imported Celery."""
    celery = sys.modules.get("celery")
    return celery is not None and isinstance(found, celery.Celery)


def _read_beat_schedule(app: object) -> SlotQueue:
    """The `SlotQueue` of a Celery application that has none in its code: what its beats would send."""
    from slotqueue.beat.application import load_queue

    try:
        return load_queue(app)
    except ConfigurationError as error:
        raise Misconfigured(str(error)) from error


def _check_form(text: str, module_name: str, attribute: str) -> None:
    words = [*module_name.split("."), *attribute.split(".")]
    if attribute and all(word.isidentifier() for word in words) and not module_name.endswith(".py"):
        return
    path = module_name.removeprefix("./").removesuffix(".py").replace("/", ".")
    hint = f"{path}:{attribute or 'slots'}" if all(word.isidentifier() for word in path.split(".")) else "app:slots"
    raise Wrong(f"{text!r} does not name an application; write MODULE:ATTRIBUTE, such as {hint}")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except MissingExtra as error:
        raise Wrong(f"{_place(error)}{error}") from error
    except ConfigurationError as error:
        raise Misconfigured(f"{_place(error)}{error}") from error
    except SystemExit as error:
        raise Wrong(f"{_place(error)}the module {name!r} ends the process when it is imported") from error
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise Wrong(
                f"there is no module {error.name!r} in {Path.cwd()} or on the Python path; "
                "start from the folder that holds it, or set PYTHONPATH"
            ) from error
        if error.name in _EXTRAS:
            hint = f"{error.name} is not installed; install it with: pip install 'slotqueue[{error.name}]'"
            raise Wrong(f"{_place(error)}{hint}") from error
        raise _raised_inside(name, error) from error
    except Exception as error:
        raise _raised_inside(name, error) from error


def _raised_inside(name: str, error: Exception) -> Wrong:
    """Show the user's frames only, and end in one line."""
    trace = _from_users_code(error.__traceback__)
    click.echo("".join(traceback.format_exception(type(error), error, trace)), err=True, nl=False)
    return Wrong(f"{_place(error)}importing {name!r} raised {type(error).__name__}: {error}")


def _from_users_code(trace: TracebackType | None) -> TracebackType | None:
    """Leave out our frames and the import system's that come before the user's own."""
    while trace is not None and _is_machinery(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _place(error: BaseException) -> str:
    """Where in the user's code it happened: "app.py, line 12: "; "" where that is unknown."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}, line {error.lineno}: "
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not _is_machinery(each.filename)]
    files = [each for each in frames if not each.filename.startswith("<")]  # "<string>": code that a library made
    mine = [each for each in files if not _is_a_librarys(each.filename)] or files
    return f"{_short(mine[-1].filename)}, line {mine[-1].lineno}: " if mine else ""


def _is_a_librarys(filename: str) -> bool:
    return "site-packages" in Path(filename).parts or Path(filename).is_relative_to(_STDLIB)


def _is_machinery(filename: str) -> bool:
    return filename.startswith((f"{_OURS}{os.sep}", "<frozen importlib", importlib.__file__))


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _instead(module: ModuleType, attribute: str) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, SlotQueue)]
    if not names:
        return "it holds no SlotQueue: assign one to a name of the module, such as slots = SlotQueue(...)"
    if len(names) == 1:
        return f"its SlotQueue is {module.__name__}:{names[0]}"
    return did_you_mean(attribute, names)
