"""The application `digmon`, to which each file of this folder adds its commands."""

from __future__ import annotations

import os
import signal
import sys
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
