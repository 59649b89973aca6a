"""The application `digmon`, to which each file adds its command, and its words on stderr."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from dig._util.text import safe_text
from dig.errors import DigError

INTERRUPTED = 130
"""The exit status after Ctrl-C, or if the process is asked to end (SIGTERM)."""

app = typer.Typer(
    name="digmon",
    help="Watch, explain and heal the collaboration of LLM agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run the command; every error that has a name ends in one sentence."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # it ends a command as Ctrl-C does
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app(prog_name="digmon")
    except DigError as error:
        print(f"digmon: {safe_text(error)}", file=sys.stderr)
    except BrokenPipeError:  # the reader of our output has gone: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # standard output on a full disk, a name that is too long, ...
        print(f"digmon: {safe_text(error, 200)}", file=sys.stderr)
    sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        from dig._version import __version__

        print(f"digmon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def warn(what: object) -> None:
    """Print a line for the user on standard error."""
    print(f"digmon: {safe_text(what)}", file=sys.stderr)


Tell = Callable[[str, int, int], None]
"""Is told what is being done, how many of it are done, and how many there are."""


@contextmanager
def counting() -> Iterator[Tell]:
    """A bar for each sort of thing on a terminal, else a line for each tenth of the way."""
    if not sys.stderr.isatty():
        yield _by_lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), text, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=None)
            bar.update(tasks[what], completed=done, total=total)

        yield tell


def _by_lines() -> Tell:
    told: dict[str, int] = {}

    def tell(what: str, done: int, total: int) -> None:
        tenths = 10 * done // total if total else -1
        if tenths > told.get(what, -1):
            told[what] = tenths
            print(f"{done} of {total} {what}", file=sys.stderr, flush=True)

    return tell
