"""The application `digmon`, and messages on stderr."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from threading import Timer
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from dig._util.text import safe_text
from dig.errors import DigError

INTERRUPTED = 130
"""The exit status after Ctrl-C, or if the process is asked to end (SIGTERM)."""
_REPEAT_S = 0.05


class Commands(TyperGroup):
    """All commands; some names have two words, beside a command of one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command of two words first; `./prune` is a directory of that name."""
        words = " ".join(args[:2])
        return super().resolve_command(ctx, [words, *args[2:]] if words in self.commands else args)


app = typer.Typer(
    name="digmon",
    cls=Commands,
    help="Watch, explain and heal the collaboration of LLM agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run the command; every named error ends in a sentence."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # it ends a command as Ctrl-C does
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = _repeat_interrupt
    out: Any = GuardedOutput(sys.stdout)
    err: Any = GuardedOutput(sys.stderr)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            _run()
    except BrokenPipeError:  # the reader of our output has gone: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(2)  # without an error the application itself has ended the process


def _repeat_interrupt(dropped: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more after Python has dropped an interrupt, as in a finalizer."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
    else:  # from a thread, since an interrupt in this function is dropped, too
        Timer(_REPEAT_S, os.kill, (os.getpid(), signal.SIGTERM)).start()


def _run() -> None:
    try:
        app(prog_name="digmon")
    except DigError as error:
        warn(error)
    except BrokenPipeError:
        raise
    except OSError as error:  # standard output on a full disk, a name that is too long, ...
        warn(safe_text(error, 200))


_BLANKS = r"(?:[^\S\r\n]|\x1b\[[\d;]*m)*"
_COMMAND = re.compile(rf"(?:^|(?<=[\r\n]))({_BLANKS})::|##\[")


class GuardedOutput:
    """A stream without commands to a CI in texts from traces.

    GitHub's runner obeys a line that begins with `::` after blanks, and `##[` anywhere. Where lines
    begin is only known here, since long ones are wrapped. `##\\u005b` is the same text in JSON.

    Attributes:
        unguarded: The stream itself, for data and for the commands that are meant.
    """

    def __init__(self, stream: Any) -> None:
        """Guard a stream."""
        self.unguarded = stream
        self._is_blank = True  # the current line, as far as it is written

    def __getattr__(self, name: str) -> Any:
        """An attribute of the stream."""
        return getattr(self.unguarded, name)

    def write(self, text: str) -> int:
        """Write a text, with broken beginnings of commands."""
        # In the middle of a line a text cannot begin a command: the dot stands for what is before.
        written = text if self._is_blank else f".{text}"
        line = written[max(written.rfind("\n"), written.rfind("\r")) + 1 :]
        guarded = _COMMAND.sub(_broken, written)
        self.unguarded.write(guarded if self._is_blank else guarded[1:])
        self._is_blank = re.fullmatch(_BLANKS, line) is not None
        return len(text)


def _broken(command: re.Match[str]) -> str:
    return r"##\u005b" if command[1] is None else f"{command[1]}: :"


def _version(is_asked: bool) -> None:
    if is_asked:
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


class GroupedCommand(TyperCommand):
    """A command with options in groups, by the headings of `group_options`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write each group under a heading, and the other options last."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        last: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            if row := parameter.get_help_record(ctx):
                is_argument = isinstance(parameter, TyperArgument)
                heading = (
                    "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None)
                )
                (groups.setdefault(heading, []) if heading else last).append(row)
        for heading, rows in {**groups, "Options": last}.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def naming(**tables: str) -> type[TyperCommand]:
    """Make a class of commands with the names of tables in place of `{TABLE}` in the help.

    Args:
        **tables: For each the `module:object`, which is imported for the help only.
    """

    class Naming(GroupedCommand):
        def get_help(self, ctx: Any) -> str:
            from pkgutil import resolve_name  # slow to import

            names = {table: ", ".join(resolve_name(place)) for table, place in tables.items()}
            for parameter in self.params:
                if isinstance(parameter, TyperArgument | TyperOption) and parameter.help:
                    parameter.help = parameter.help.format(**names)
            return super().get_help(ctx)

    return Naming


def warn(message: object) -> None:
    """Print a line for the user on standard error."""
    print(f"digmon: {safe_text(message)}", file=sys.stderr)


def print_result(
    as_json: bool, data: Callable[[], Any], lines: Callable[[], Iterable[str]]
) -> None:
    """Print a result as JSON or as lines; the other form is not made.

    Args:
        as_json: Whether the result is printed for a program.
        data: Makes plain JSON of it.
        lines: Makes lines for a person of it.
    """
    for line in [json.dumps(data())] if as_json else lines():
        print(line)


Tell = Callable[[str, int, int], None]
"""Takes what is being done, how many of it are done, and how many there are."""


@contextmanager
def progress_shown(if_interrupted: str = "interrupted") -> Iterator[Tell]:
    """Show how far long work is: one bar per sort of thing on a terminal, else one line per tenth.

    Ctrl-C ends the command with this sentence.
    """
    try:
        with _bars() if sys.stderr.isatty() else nullcontext(_by_lines()) as tell:
            yield tell
    except KeyboardInterrupt:
        warn(if_interrupted)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _bars() -> Iterator[Tell]:
    from rich import progress
    from rich.console import Console

    text = progress.TextColumn("{task.description}")
    counts = (progress.BarColumn(), progress.MofNCompleteColumn())
    columns = (*counts, text, progress.TimeRemainingColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, progress.TaskID] = {}

        def tell(unit: str, count: int, total: int) -> None:
            if unit not in tasks:
                tasks[unit] = bar.add_task(unit, total=None)
            bar.update(tasks[unit], completed=count, total=total)

        yield tell


def _by_lines() -> Tell:
    shown_tenths: dict[str, int] = {}

    def tell(unit: str, count: int, total: int) -> None:
        tenths = 10 * count // total if total else -1
        if tenths > shown_tenths.get(unit, -1):
            shown_tenths[unit] = tenths
            print(f"{count} of {total} {unit}", file=sys.stderr, flush=True)

    return tell
