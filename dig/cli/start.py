"""`digmon demo`, `doctor` and `init`: the first steps."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Annotated, NamedTuple

import typer

from dig._util.extras import install_line, version_numbers
from dig._util.text import counted, safe_text
from dig.errors import DigError, SettingsError

from .app import app, print_result
from .options import AsJson, Runs

DEMO = "count-frequency --agents 6 --size 10000 --seed 651 --habit error=0 --twin"
"""With its seed a team gets stuck, submits too early, is healed and counts right; unwatched it has
no answer. Agents count without mistakes, so that all failures are those of the team."""

_MAINTAINERS = ("all", "bench", "dev", "docs", "fuzz")
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?([^;]*);.*extra == ['\"]([\w-]+)['\"]")
_BOUND = re.compile(r"(>=|<|~=)([\d.]+)")


@app.command()
def demo(
    speed: Annotated[float, typer.Option(help="How many times faster than real time.")] = 10,
    runs: Runs = Path("runs"),
) -> None:
    """Watch six simulated agents, and the same team unwatched.

    They count numbers. It needs no key and no network. At the end it says where the page is.
    """
    print(
        "Six agents without a language model count numbers. Their times are simulated, and pass\n"
        f"{speed:g} times as fast as yours; so are errors in reading, which are left out here."
    )
    arguments = ["run", *DEMO.split(), "--speed", str(speed), "--runs", str(runs)]
    app(arguments, prog_name="digmon")


class Observation(NamedTuple):
    """An observation of `digmon doctor`, a line.

    Attributes:
        about: What was looked at.
        text: What was seen, or what to do.
        is_wrong: Whether something has to be done.
    """

    about: str
    text: str
    is_wrong: bool = False


@app.command()
def doctor(runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Check versions, extras, settings and the machine.

    Exit status 1 if something is wrong. An extra that is not installed is not wrong.
    """
    lines = [*_versions(), *_extras(), _browser(), _writing(runs), *_variables(), _settings()]
    wrong = sum(line.is_wrong for line in lines)
    last = f"{counted(wrong, 'thing')} to do" if wrong else "nothing is wrong"
    print_result(
        as_json, lambda: [line._asdict() for line in lines], lambda: [*map(_text, lines), last]
    )
    raise typer.Exit(1 if wrong else 0)


def _text(line: Observation) -> str:
    return f"{'!' if line.is_wrong else ' '} {line.about}: {safe_text(line.text)}"


def _versions() -> Iterator[Observation]:
    import dig

    yield Observation("dig-monitor", f"{dig.__version__}, in {Path(dig.__file__).parent}")
    is_old = sys.version_info < (3, 11)
    yield Observation("Python", f"{sys.version.split()[0]}, {sys.executable}", is_old)


def _extras() -> Iterator[Observation]:
    """The extras of the installed package, with versions."""
    from importlib.metadata import PackageNotFoundError, requires

    extras: dict[str, list[tuple[str, str]]] = {}
    try:
        requirements = requires("dig-monitor") or []
    except PackageNotFoundError:  # a checkout on the path
        yield Observation("extras", "unknown: dig-monitor is not installed, only imported")
        return
    for requirement in requirements:
        if match := _REQUIREMENT.match(requirement):
            package, _, bounds, extra = match.groups()
            if extra not in _MAINTAINERS and package != "dig-monitor":
                extras.setdefault(extra, []).append((package, bounds.strip()))
    for extra, packages in sorted(extras.items()):
        yield _extra(extra, packages)


def _extra(extra: str, packages: list[tuple[str, str]]) -> Observation:
    from importlib.metadata import PackageNotFoundError, version

    versions = []
    for package, bounds in packages:
        try:
            installed = version(package)
        except PackageNotFoundError:
            return Observation(f"extra {extra}", f"not installed: {install_line(extra)}")
        versions.append(f"{package} {installed}")
        if not _fits(installed, bounds):
            text = f"{package} {installed} does not fit {bounds}: {install_line(extra)}"
            return Observation(f"extra {extra}", text, True)
    return Observation(f"extra {extra}", ", ".join(versions))


def _fits(installed: str, bounds: str) -> bool:
    """Whether a version lies within bounds."""
    numbers = version_numbers(installed)
    return all(
        numbers < version_numbers(bound) if sign == "<" else numbers >= version_numbers(bound)
        for sign, bound in _BOUND.findall(bounds)
    )


def _browser() -> Observation:
    import webbrowser

    try:
        return Observation("browser", webbrowser.get().name)
    except webbrowser.Error:
        return Observation("browser", "none: use digmon view --no-open")


def _writing(runs: Path) -> Observation:
    from tempfile import TemporaryFile

    folder = next(it for it in (runs, *runs.absolute().parents) if it.exists())
    try:
        with TemporaryFile(dir=folder):
            return Observation(f"writing to {runs}", "possible")
    except OSError as error:
        return Observation(f"writing to {runs}", f"{error.strerror or error}", True)


def _variables() -> Iterator[Observation]:
    from dig.adapters.switches import MODE, OFF, read_mode, read_off
    from dig.traces.otel.exporters import exporter

    reading: dict[str, tuple[Callable[[], object], str]] = {
        OFF: (read_off, "teams are not wrapped"),
        MODE: (read_mode, "teams are not healed"),
        "DIG_OTLP": (lambda: exporter("traces", os.environ["DIG_OTLP"]), "spans go there"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": (lambda: True, "spans go there"),
    }
    for name, (read, effect) in reading.items():
        if value := os.environ.get(name):
            try:
                effect = effect if read() else "teams are wrapped"
            except DigError as error:
                yield Observation(name, str(error), True)
            else:
                yield Observation(name, f"{value}: {effect}")


def _settings() -> Observation:
    from dig.detectors.policy_settings import load_policy
    from dig.detectors.settings_file import find_settings
    from dig.detectors.thresholds import Thresholds

    try:
        config = find_settings(None)
        Thresholds.load((), config)
        load_policy(config)
    except DigError as error:
        return Observation("settings", str(error), True)
    return Observation("settings", f"{config or 'the defaults; see digmon init'}")


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("digmon.toml"),
) -> None:
    """Write a file of settings: policy, budget, alerts, thresholds.

    All of it is commented out, so the file changes nothing until a line is taken in. It goes to
    `--config` of commands, and to `policy=` of `dig.wrap`.
    """
    from dig.traces.journal.durable_files import journal_errors, write_file

    if file.exists():
        raise SettingsError(f"{file} is there already; name another one")
    with journal_errors("write", file):
        write_file(file, "".join(f"{line}\n" for line in _settings_lines()).encode(), mode=0o666)
    print(f"{safe_text(file)}: all lines are comments; take in what you need")


def _settings_lines() -> Iterator[str]:
    from dig.detectors.patterns import BY_NAME
    from dig.detectors.thresholds import Thresholds

    yield from (
        "# Settings of dig-monitor, for dig.wrap(team, policy=FILE) and --config FILE of all",
        "# commands. Of a stored run digmon check uses [policy] alone: a trace has its own",
        "# thresholds. In pyproject.toml the tables are [tool.digmon.policy] and so on.",
        "",
        "[policy]",
        "# What is done about findings of a pattern: off, observe, ask or heal.",
    )
    yield from (f'# {name} = "heal"  # {row.title}' for name, row in BY_NAME.items())
    yield from (
        "",
        "[budget]",
        "# The most that a request may use; the agents are asked for what there is.",
        "# turns = 40",
        "# tokens = 100000",
        "# seconds = 600.0",
        "",
        "[alerts]",
        "# Where errors and warnings go: log, webhook:URL, slack:env:SLACK_HOOK, command:CMD.",
        '# to = ["log"]',
        "",
        "[thresholds]",
    )
    for name, field in Thresholds.model_fields.items():
        yield indent(field.description or "", "# ")
        value = "off" if field.default is None else field.default
        yield f"# {name} = {json.dumps(value)}"
