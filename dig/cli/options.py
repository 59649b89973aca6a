"""Options and arguments that several commands take, alone and in groups."""

import inspect
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import Field, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from dig.errors import JournalError, SettingsError

from .app import warn

if TYPE_CHECKING:
    from dig.detectors.policy import Policy
    from dig.traces.journal.journal import Keeping
    from dig.traces.journal.recovery import SetAside

T = TypeVar("T")


def find_run(path: Any) -> Any:
    """Find a run: a path, or else the name of a run in `runs/`."""
    if isinstance(path, list | tuple):
        return [*map(find_run, path)]
    # Reports tell the names of runs and no paths, so that a mailed report tells nothing of a disk.
    stored = Path("runs") / path
    return stored if path.name == str(path) and not path.exists() and stored.exists() else path


Trace = Annotated[
    Path,
    typer.Argument(callback=find_run, help="A trace (NAME.dig.jsonl) or a run directory."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write a page to walk through, too: HTML."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]
Salvage = Annotated[
    bool, typer.Option("--salvage", help="Set damaged lines aside, and all that follows them.")
]
Cleaned = Annotated[
    bool, typer.Option("--cleaned", help="Only productive edges, and what they touch.")
]
At = Annotated[
    int | None, typer.Option(min=0, help="As it stood after the record at this logical time.")
]
DiagnosisFile = Annotated[
    Path | None,
    typer.Option(
        "--diagnosis",
        metavar="FILE",
        help="What `digmon why RUN --json` printed: candidates, and changes that were tried.",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A threshold; `digmon thresholds` lists all."),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file with tables [thresholds], [policy] and [budget]; else pyproject.toml, "
        "if it has a table [tool.digmon]."
    ),
]
Alert = Annotated[
    list[str] | None,
    typer.Option(
        metavar="log|webhook:URL|slack:URL|teams:URL|command:CMD",
        help="Where errors and warnings go while it runs; webhook:env:NAME takes the URL from a "
        "variable.",
    ),
]
Judge = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="How the judge judges: every=10, recall=0.6, ..."),
]
Habit = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A habit of simulated agents: error=0, wait=0.1, ..."),
]
Further = Annotated[
    list[str] | None,
    typer.Option("--detector", metavar="MODULE:OBJECT", help="A detector of your own, besides."),
]
FaultKinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="MODULE:OBJECT", help="A fault's kind of your own that it has."),
]
UsualFile = Annotated[
    Path | None,
    typer.Option("--usual", metavar="FILE", help="What is usual for the team; see `digmon learn`."),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="How many processes work at once.")]
Runs = Annotated[Path, typer.Option(help="Where run directories are made.")]
PerAgent = Annotated[
    bool, typer.Option("--service-per-agent", help="Make each agent a service, with a colour.")
]


def further(named: Sequence[str] | None) -> tuple[str, ...]:
    """Return the detectors besides the standard detectors: installed or named.

    A module in the current directory can be named, as with `python -m`.
    """
    from dig.detectors import plugins

    if named and "" not in sys.path:
        sys.path.insert(0, "")
    return tuple(dict.fromkeys((*plugins.list_installed(), *(named or ()))))


def policy(config: Path | None, named: Sequence[str] = ()) -> "Policy":
    """The policy of a file with settings and of the environment.

    Args:
        config: The file, from `find_settings`; ``None``: there is none.
        named: The detectors besides the standard ones, from `further`; it may be about theirs.

    Raises:
        SettingsError: The policy is wrong; the message says where, and what to write.
    """
    from dig.detectors import plugins
    from dig.detectors.policy_settings import load_policy

    return load_policy(config, patterns=[str(d.pattern) for d in plugins.detectors(named)])


def recover_torn_end(file: Path, salvage: bool) -> "SetAside | None":
    """Set a torn end of a journal aside, and say so."""
    from dig.traces.journal.recovery import recover

    try:
        aside = recover(file, salvage=salvage)
    except JournalError as error:
        if salvage:
            raise
        warn(error)  # a run that is only there to be read can be read with a torn end, too
        return None
    if aside is not None:
        warn(aside)
    return aside


# --- groups of options ---


def group_options(command: Callable[..., T]) -> Callable[..., T]:
    """Turn each dataclass among the parameters of a command into options, a field each.

    A field is annotated as a parameter of a command is, with its default beside it. A field that
    two groups have is one option. The annotations of fields are no texts.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {}
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in parameters.items():
        if not is_dataclass(parameter.annotation):
            options[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        groups[name] = parameter.annotation
        for option in fields(parameter.annotation):
            # Of two groups the first one's.
            options.setdefault(option.name, _option(option, parameter.annotation))

    @wraps(command)
    def run(**values: Any) -> T:
        instances = {
            name: group(**{option.name: values[option.name] for option in fields(group)})
            for name, group in groups.items()
        }
        return command(**instances, **{name: values[name] for name in parameters if name in values})

    # typer reads the options of a command from its signature, and their types from annotations.
    run.__signature__ = inspect.Signature([*options.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: option.annotation for name, option in options.items()}
    return run


def _option(field: Field[Any], group: Any) -> inspect.Parameter:
    kind, shared = get_args(field.type)
    option = copy(shared)  # other commands have it, too
    option.rich_help_panel = (group.__doc__ or "").partition(".")[0].partition(":")[0]
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
        annotation=Annotated[kind, option],
    )  # fmt: skip


@dataclass(frozen=True)
class ClockOptions:
    """The speed of the clock."""

    speed: Annotated[
        float, typer.Option(help="How many times faster than real time its clock goes.")
    ] = 1.0
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Run in virtual time: the same seed, the same bytes.")
    ] = False

    @property
    def rate(self) -> float | None:
        """The clock's speed; ``None``: the run is in virtual time.

        Raises:
            SettingsError: The speed is out of range.
        """
        if not 0 < self.speed <= 1000:
            raise SettingsError(
                f"--speed must be greater than 0 and at most 1000, got {self.speed:g}"
            )
        return None if self.virtual else self.speed


Level = StrEnum("Level", {"process": "process", "effects": "effects", "power": "power"})
"""A level of durability."""

DiskFull = StrEnum("DiskFull", {"stop": "stop", "continue_": "continue"})
"""The measures when a record does not fit on the disk."""


@dataclass(frozen=True)
class StorageOptions:
    """The place of a run's directory, and the durability of the journal."""

    runs: Runs = Path("runs")
    durability: Annotated[
        Level,
        typer.Option(
            help="The records that survive a power cut, not only a crash of this process: for sure "
            "none; those before an agent's call or an answer; or those before a delivery, too."
        ),
    ] = Level.process
    disk_full: Annotated[
        DiskFull,
        typer.Option(
            help="Whether to go on without a journal if the disk is full or its file is gone."
        ),
    ] = DiskFull.stop
    segment_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="How large the trace's file becomes before a next one is begun: 64MiB; 0: never.",
        ),
    ] = "256MiB"

    def keeping(self) -> "Keeping":
        """The settings of the run's journal.

        Raises:
            SettingsError: The segment size is not a size.
        """
        from dig.traces.journal.journal import Keeping

        return Keeping(self.durability.value, self.disk_full.value, _bytes(self.segment_size))


def _bytes(size: str) -> int | None:
    """A size in bytes; ``None``: there is no limit."""
    from pydantic import ByteSize, TypeAdapter, ValidationError

    try:
        return int(TypeAdapter(ByteSize).validate_python(size)) or None
    except ValidationError:
        raise SettingsError(
            f"--segment-size must be a size such as 64MiB, 1GiB or 0, got {size!r}"
        ) from None
